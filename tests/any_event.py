"""Hypothesis strategies for any event: every field takes anything that its Avro schema can carry."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from schemas.identity import AttemptId

INT64 = st.integers(-(2**63), 2**63 - 1)
PRIMITIVES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=20),
    int: INT64,
    float: st.floats(),
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
}
# Slurm counts restarts; a JobClosed is about all attempts up to its own.
ATTEMPTS = st.builds(AttemptId, st.text(max_size=5), st.text(max_size=5), INT64, st.integers(0, 3))


@cache
def any_of(event_class: type) -> st.SearchStrategy[Any]:
    """Any event of a class."""
    if event_class is AttemptId:
        return ATTEMPTS
    hints = get_type_hints(event_class, include_extras=True)
    return st.builds(event_class, **{field.name: _any(hints[field.name]) for field in fields(event_class)})


def _any(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is Annotated:
        return _any(get_args(hint)[0])
    if hint in PRIMITIVES:
        return PRIMITIVES[hint]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return any_of(hint)
    arguments = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        inner = next(argument for argument in arguments if argument is not types.NoneType)
        return st.none() | _any(inner)
    return st.lists(_any(arguments[0]), max_size=2).map(tuple)
