"""Frozen dataclasses at the speed of a dict: the generated `__init__` sets one field at a time, at a microsecond each.

Deciding copies a job's state several times a fact, and decoding builds several objects a record, so this is most of
what either costs. The result is the same object that `dataclasses.replace` or the class itself would give.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["build", "replace"]

_new = object.__new__

if TYPE_CHECKING:
    from dataclasses import replace
else:

    def replace(instance, /, **changes):
        """Do what `dataclasses.replace` does, for a dataclass of plain fields: no slots, no `__post_init__`.

        Raises TypeError for a change that names no field.
        """
        known = instance.__dict__
        if len(known) != len(instance.__dataclass_fields__):  # a cached property holds something, which may not hold
            return dataclasses.replace(instance, **changes)
        copy = _new(type(instance))
        fields = copy.__dict__
        fields.update(known)
        fields.update(changes)
        if len(fields) != len(known):
            raise TypeError(f"{type(instance).__name__} has no field {', '.join(changes.keys() - known.keys())}")
        return copy


def build(cls: type, values: dict[str, Any]) -> Any:
    """Return an instance of `cls` with exactly these values, which must be one for each of its fields."""
    instance: Any = _new(cls)
    instance.__dict__.update(values)
    return instance
