"""A decider that reads a clock, draws a number or does I/O, directly or through another module, fails this test."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = {"schemas", "streams", "recovery", "sac", "projections", "gateway", "infra", "tests"}
ALLOWED = {
    "__future__",
    "ast",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "json",
    "operator",
    "re",
    "types",
    "typing",
}
# uuid is allowed for its pure functions alone: uuid1 and uuid4 are a clock and a die.
ALLOWED_NAMES = {"uuid": {"UUID", "uuid5"}}
FORBIDDEN_BUILTINS = {"open", "input", "print", "id", "hash", "exec", "eval", "__import__", "breakpoint"}


def source_of(module: str) -> Path:
    spec = find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None, module
    return Path(spec.origin)


def impurities(tree: ast.AST) -> list[str]:
    """What a module imports or calls that a decider must not."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] not in ALLOWED | PACKAGES]
        elif isinstance(node, ast.ImportFrom):
            root = (node.module or "").split(".")[0]
            names = {alias.name for alias in node.names}
            if root in ALLOWED_NAMES:
                found += sorted(names - ALLOWED_NAMES[root])
            elif root not in ALLOWED | PACKAGES:
                found.append(node.module or "")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_BUILTINS:
            found.append(f"{node.func.id}()")
    return found


def reachable(start: str) -> dict[str, Path]:
    """Every module of ours that importing `start` brings in."""
    seen: dict[str, Path] = {}
    queue = [start]
    while queue:
        module = queue.pop()
        if module in seen:
            continue
        seen[module] = source_of(module)
        for node in ast.walk(ast.parse(seen[module].read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
                queue.append(node.module)
                queue += [f"{node.module}.{a.name}" for a in node.names if find_spec_quietly(f"{node.module}.{a.name}")]
            elif isinstance(node, ast.Import):
                queue += [alias.name for alias in node.names if alias.name.split(".")[0] in PACKAGES]
    return seen


def find_spec_quietly(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("start", ["streams.decide.decide", "streams.decide.nodes", "sac.plan"])
def test_nothing_that_it_reaches_is_impure(start: str) -> None:
    modules = reachable(start)
    assert len(modules) > 3
    found = {module: bad for module, path in modules.items() if (bad := impurities(ast.parse(path.read_text())))}
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from datetime import datetime",
        "import random",
        "from uuid import uuid4",
        "import os",
        "open('x')",
    ],
)
def test_the_check_itself_sees_each_kind_of_impurity(text: str) -> None:
    assert impurities(ast.parse(text)) != []
