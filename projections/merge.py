"""How rows enter a table: each `Upsert` is one way, with one rule for rows that meet under the same key.

The rules give the same row whatever repeats: the first row stays, the latest by an order column wins, or the greatest
(least) value stays. A batch is folded here first, because PostgreSQL takes one row a key in a statement; then it goes
over as one JSON document, one statement an Upsert, in the order of the keys (so that two runners never wait for each
other). JSON because it is three times as fast to write as arrays are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import orjson
from sqlalchemy import Connection, Executable, Table, Text, bindparam, case, cast, column, func, or_, select
from sqlalchemy.dialects.postgresql import JSONB, insert

Values = dict[str, Any]


@dataclass(frozen=True)
class Upsert:
    """One way into `table`. Each column is in exactly one of the groups.

    `fixed` is written with the first row and never changed. `latest` is replaced by a row whose `order` is not lower.
    `greatest` and `least` keep the extreme. A None never replaces a value in those.
    """

    name: str
    table: Table
    key: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    order: str = ""
    latest: tuple[str, ...] = ()
    greatest: tuple[str, ...] = ()
    least: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        order = (self.order,) if self.order else ()
        return (*self.key, *self.fixed, *order, *self.latest, *self.greatest, *self.least)

    def merge(self, old: Values, new: Values) -> Values:
        """The row that `new` leaves where `old` stands: the same rule as the statement's."""
        merged = dict(old)
        if self.order and new[self.order] >= old[self.order]:
            merged |= {name: new[name] for name in (self.order, *self.latest)}
        for names, extreme in ((self.greatest, max), (self.least, min)):
            for name in names:
                known = [value for value in (old[name], new[name]) if value is not None]
                merged[name] = extreme(known) if known else None
        return merged

    def document(self, rows: Iterable[Values]) -> str:
        """Fold the rows into the one JSON document that `statement` takes."""
        folded: dict[Any, Values] = {}
        key_of = self._key_of
        for row in rows:
            key = key_of(row)
            folded[key] = self.merge(folded[key], row) if key in folded else row
        return json_text([folded[key] for key in sorted(folded)])

    @cached_property
    def _key_of(self) -> Callable[[Values], Any]:
        return itemgetter(*self.key)

    @cached_property
    def statement(self) -> Executable:
        """INSERT … SELECT from one JSON document … ON CONFLICT: one text and one parameter for any number of rows."""
        typed = [column(name, self.table.c[name].type) for name in self.columns]
        document = func.jsonb_to_recordset(cast(bindparam("rows", type_=Text()), JSONB))
        given = document.table_valued(*typed, name="given").render_derived(with_types=True)
        statement = insert(self.table).from_select(list(self.columns), select(*given.c))
        new, old = statement.excluded, self.table.c
        changes: dict[str, Any] = {name: func.greatest(old[name], new[name]) for name in self.greatest}
        changes |= {name: func.least(old[name], new[name]) for name in self.least}
        if self.order:
            newer = or_(old[self.order].is_(None), new[self.order] >= old[self.order])
            latest = (self.order, *self.latest)
            changes |= {name: case((newer, new[name]), else_=old[name]) for name in latest}
        if not changes:
            return statement.on_conflict_do_nothing(index_elements=list(self.key))
        return statement.on_conflict_do_update(index_elements=list(self.key), set_=changes)


@dataclass(frozen=True)
class Row:
    """One row on its way into a table."""

    upsert: Upsert
    values: Values


Documents = tuple[tuple[Upsert, str], ...]
"""What to write, an Upsert and its JSON document at a time."""


def documents_of(rows: Iterable[Row], order: tuple[Upsert, ...]) -> Documents:
    """All rows as documents, one an Upsert, in the given order. Raises KeyError for an Upsert outside of it."""
    grouped: dict[str, list[Values]] = {upsert.name: [] for upsert in order}
    for row in rows:
        grouped[row.upsert.name].append(row.values)
    return tuple((upsert, upsert.document(grouped[upsert.name])) for upsert in order if grouped[upsert.name])


def write_documents(connection: Connection, documents: Documents) -> None:
    """Write the documents, one statement each."""
    for upsert, document in documents:
        connection.execute(upsert.statement, {"rows": document})


def json_text(value: Any) -> str:
    """JSON that PostgreSQL takes: no NUL in texts."""
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # no valid text, or a number that is no 64-bit integer
        return json.dumps(_clean(value), separators=(",", ":"))
    return orjson.dumps(_clean(value)).decode() if "\\u0000" in text else text


def _clean(value: Any) -> Any:
    """The value without NULs, which job output may hold and PostgreSQL refuses, and with null for what is no number."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {_clean(name): _clean(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value
