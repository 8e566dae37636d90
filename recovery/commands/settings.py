"""`recovery settings`: every key, what it means, and its value here."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recovery.commands.common import TOOLS, settings_of

if TYPE_CHECKING:
    from pydantic import BaseModel

WIDTH = 110


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("settings", rich_help_panel=TOOLS)(settings)


def settings(ctx: typer.Context) -> None:
    """Print every setting with its meaning and its value here, as a settings file (it shows passwords)."""
    from pydantic import BaseModel

    found = settings_of(ctx)
    lines = _keys(found)
    for name in type(found).model_fields:
        section = getattr(found, name)
        if isinstance(section, BaseModel):
            lines += _table(name, section)
    typer.echo("\n".join(lines))


def _table(name: str, section: "BaseModel") -> list[str]:
    """Return a table, and those in it."""
    from pydantic import BaseModel

    about = (type(section).__doc__ or "").strip().partition("\n")[0]
    lines = ["", f"# {about}", f"[{name}]", *_keys(section)]
    for key, inner in section:
        if isinstance(inner, BaseModel):
            lines += _table(f"{name}.{key}", inner)
    return lines


def _keys(model: "BaseModel") -> list[str]:
    """Return the plain keys of a table, each under its meaning; a key without a value is commented out."""
    from textwrap import wrap

    from pydantic import BaseModel

    lines: list[str] = []
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            continue
        lines += [f"# {line}" for line in wrap(field.description or "", WIDTH)]
        lines.append(f"# {name} =" if value is None else f"{name} = {_toml(value)}")
    return lines


def _toml(value: object) -> str:
    """Return a value as TOML, which for these types is JSON."""
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return f"{{{', '.join(f'{name} = {_toml(one)}' for name, one in value)}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(one) for one in value)}]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)
