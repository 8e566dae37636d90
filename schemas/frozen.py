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
        copy = _new(type(instance))
        fields = copy.__dict__
        fields.update(instance.__dict__)
        fields.update(changes)
        if len(fields) == len(instance.__dataclass_fields__):
            return copy
        # A cached property holds something that may not hold for the copy, or a change names no field.
        return dataclasses.replace(instance, **changes)


def build(cls: type, values: dict[str, Any]) -> Any:
    """Return an instance of `cls` with exactly these values, which must be one for each of its fields."""
    instance: Any = _new(cls)
    instance.__dict__.update(values)
    return instance
