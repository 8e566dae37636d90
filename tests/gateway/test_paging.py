"""Page tokens, with no database about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.paging import Cursor, cut, decimal_offset, fingerprint, page_offset, read_token, write_token

INT64 = st.integers(-(2**63) + 1, 2**63 - 1)


@given(INT64, st.text(max_size=40), st.booleans())
def test_an_opaque_token_reads_back_as_written(number: int, text: str, backward: bool) -> None:
    cursor = Cursor((number, text), backward)
    token = write_token(cursor, "query")
    assert token.replace("-", "").replace("_", "").isalnum()
    assert read_token("page", token, "query", (int, str)) == cursor


@given(st.text())
def test_any_other_text_is_refused_and_named(text: str) -> None:
    with pytest.raises(BadRequest, match=r"page is .*the page before"):
        read_token("page", text, "query", (int, str))


@given(st.lists(st.integers() | st.text() | st.booleans() | st.none() | st.floats(), max_size=4))
def test_a_token_of_another_list_or_query_is_refused(key: list[int | str]) -> None:
    token = write_token(Cursor(tuple(key)), "another query")
    with pytest.raises(BadRequest):
        read_token("page", token, "query", (int, str))


def test_a_token_with_other_filters_says_so() -> None:
    token = write_token(Cursor((1, "a")), fingerprint("advice", True))
    with pytest.raises(BadRequest, match="another query; keep the filters"):
        read_token("page", token, fingerprint("advice", False), (int, str))


@given(st.text())
def test_an_offset_is_decimal_or_refused(text: str) -> None:
    if text.isascii() and text.isdigit() and int(text) <= 10**12:
        assert decimal_offset("page", text) == int(text)
    else:
        with pytest.raises(BadRequest, match="nextPageToken"):
            decimal_offset("page", text)


def test_page_numbers_count_from_one_and_exclude_tokens() -> None:
    assert [page_offset(None, number, 20) for number in (None, 1, 3)] == [0, 0, 40]
    assert page_offset("60", None, 20) == 60
    with pytest.raises(BadRequest, match="one of the two"):
        page_offset("60", 1, 20)


@given(st.integers(0, 60), st.integers(1, 20))
def test_following_next_tokens_shows_each_item_once(total: int, limit: int) -> None:
    seen: list[int] = []
    offset, pages = 0, 0
    while True:
        page, token = cut(range(offset, min(total, offset + limit + 1)), offset, limit)
        seen += page
        pages += 1
        if not token:
            break
        offset = decimal_offset("pageToken", token)
    assert seen == list(range(total))
    assert pages == max(1, -(-total // limit))
