"""Frozen dataclasses at the speed of a dict: the generated `__init__` sets one field at a time, at a microsecond each.

Deciding copies a job's state several times a fact, and decoding builds several objects a record, so this is most of
what either costs. The result is the same object that `dataclasses.replace` or the class itself would give.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["build", "replace"]

_new = object.__new__
_set = object.__setattr__

if TYPE_CHECKING:
    from dataclasses import replace
else:

    def replace(instance, /, **changes):
        """Do what `dataclasses.replace` does, for a dataclass of plain fields: no slots, no `__post_init__`.

        Raises TypeError for a change that names no field.
        """
        fields = instance.__dict__ | changes
        if len(fields) == len(instance.__dataclass_fields__):
            copy = _new(type(instance))
            _set(copy, "__dict__", fields)
            return copy
        # A cached property holds something that may not hold for the copy, or a change names no field.
        return dataclasses.replace(instance, **changes)


def build(cls: type, values: dict[str, Any]) -> Any:
    """Return an instance of `cls` with exactly these values, one for each of its fields; the dict becomes its own."""
    instance: Any = _new(cls)
    _set(instance, "__dict__", values)
    return instance
