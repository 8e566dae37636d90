"""Ids that are the same on every machine, for ever."""

from __future__ import annotations

from uuid import UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from schemas.identity import NAMESPACE, derived_id

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(TEXTS | st.integers(), min_size=1))
def test_a_derived_id_is_the_uuid5_of_its_parts(parts: list[str | int]) -> None:
    text = derived_id(*parts)
    assert text == str(uuid5(NAMESPACE, "\x1f".join(map(str, parts))))
    assert UUID(text).version == 5
