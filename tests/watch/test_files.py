"""A followed file gives each of its lines once, from any place and whatever happens to it between two looks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.sources.files import BLOCK_BYTES, FileFollower, FileState, Place


def lines(follower: FileFollower, now_ms: int = 0, *, over: bool = False) -> bytes:
    return b"".join(block.data for block in follower.look(now_ms, over=over))


def test_appended_lines_come_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\ntwo\n")
    follower = FileFollower(str(path))
    assert lines(follower) == b"one\ntwo\n"
    assert lines(follower) == b""
    with path.open("ab") as file:
        file.write(b"three\n")
    assert lines(follower) == b"three\n"
    assert (follower.place.offset, follower.place.line_no, follower.place.epoch) == (14, 3, 0)


def test_lines_are_counted_up_to_any_place_and_by_whoever_stops_in_between(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\ntwo\nthree\n")
    follower = FileFollower(str(path))
    for block in follower.look(0):
        assert [block.lines.before(offset) for offset in (0, 3, 4, 4, 9)] == [0, 0, 1, 1, 2]
        with pytest.raises(ValueError, match="up to 9 already, not to 8"):
            block.lines.before(8)
        break
    assert follower.place.line_no == 3


def test_a_partial_last_line_waits_for_its_end_or_for_the_end_of_its_writers(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\npart")
    follower = FileFollower(str(path))
    assert lines(follower) == b"one\n"
    with path.open("ab") as file:
        file.write(b"ial\nlast words")
    assert lines(follower) == b"partial\n"
    assert lines(follower, over=True) == b"last words"
    assert lines(follower, over=True) == b""


def test_a_progress_bar_that_redraws_itself_gives_its_states(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"\r 1%|\r 2%|\r 3")
    assert lines(FileFollower(str(path))) == b"\r 1%|\r 2%|\r"


def test_a_file_that_is_rotated_is_read_to_its_end_before_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old 1\n")
    follower = FileFollower(str(path))
    assert lines(follower) == b"old 1\n"
    with path.open("ab") as file:
        file.write(b"old 2\nold 3")
    path.rename(tmp_path / "out.1")
    path.write_bytes(b"new 1\n")
    blocks = list(follower.look(0))
    assert [(block.start.epoch, block.start.offset, block.data) for block in blocks] == [
        (0, 6, b"old 2\n"),
        (0, 12, b"old 3"),
        (1, 0, b"new 1\n"),
    ]


def test_a_copy_that_takes_the_files_place_goes_on_where_reading_stopped(tmp_path: Path) -> None:
    path, copy = tmp_path / "out", tmp_path / "copy"
    path.write_bytes(b"line\n" * 100)
    follower = FileFollower(str(path))
    lines(follower)
    with path.open("ab") as file:
        file.write(b"one more\npart")
    copy.write_bytes(path.read_bytes() + b"ial\n")
    copy.replace(path)
    blocks = list(follower.look(0))
    assert [(block.start.epoch, block.start.offset, block.data) for block in blocks] == [
        (0, 500, b"one more\n"),
        (0, 509, b"partial\n"),
    ]


@pytest.mark.parametrize("kept", [b"", b"line\n" * 99], ids=["another", "a shorter one"])
def test_what_takes_the_files_place_and_holds_something_else_begins_anew(tmp_path: Path, kept: bytes) -> None:
    path, other = tmp_path / "out", tmp_path / "other"
    path.write_bytes(b"line\n" * 100)
    follower = FileFollower(str(path))
    lines(follower)
    other.write_bytes(kept + b"attempt 1\n" * 100)
    other.replace(path)
    [block] = follower.look(0)
    assert (block.start.epoch, block.start.offset, block.data) == (1, 0, kept + b"attempt 1\n" * 100)
    assert block.identity.startswith(f"{path.stat().st_dev}:{path.stat().st_ino}:")


def test_a_file_that_is_renamed_away_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old 1\n")
    follower = FileFollower(str(path))
    assert lines(follower) == b"old 1\n"
    with path.open("ab") as file:
        file.write(b"old 2\n")
    path.rename(tmp_path / "out.1")
    assert lines(follower) == b"old 2\n"
    assert follower.state is FileState.ABSENT
    path.write_bytes(b"new\n")
    assert lines(follower) == b"new\n"
    assert follower.place.epoch == 1


def test_a_truncated_file_begins_a_new_epoch(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"attempt 0, a long line\n")
    follower = FileFollower(str(path))
    lines(follower)
    path.write_bytes(b"attempt 1\n")
    [block] = follower.look(5)
    assert (block.start.epoch, block.start.offset, block.data) == (1, 0, b"attempt 1\n")


@pytest.mark.parametrize("same_start", [False, True])
def test_truncation_and_growth_past_the_old_offset_between_two_looks_is_seen(tmp_path: Path, same_start: bool) -> None:
    path = tmp_path / "out"
    head = b"banner\n" * 100 if same_start else b""
    path.write_bytes(head + b"attempt 0\n" * 5)
    follower = FileFollower(str(path))
    lines(follower)
    inode = path.stat().st_ino
    path.write_bytes(head + b"attempt 1\n" * 50)
    assert path.stat().st_ino == inode, "the test must truncate, not replace"
    assert lines(follower) == head + b"attempt 1\n" * 50
    assert follower.place.epoch == 1


def test_truncation_between_two_processes_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"attempt 0\n" * 20)
    follower = FileFollower(str(path))
    lines(follower)
    follower.close()
    path.write_bytes(b"attempt 1\n" * 40)
    again = FileFollower(str(path), follower.place)
    assert lines(again) == b"attempt 1\n" * 40
    assert again.place.epoch == 1


@pytest.mark.parametrize("begun_anew", [True, False])
def test_a_file_renamed_while_nobody_looked_is_read_to_its_end_before_the_new_one(
    tmp_path: Path, begun_anew: bool
) -> None:
    path, size = tmp_path / "out", 3 * BLOCK_BYTES
    path.write_bytes(b"attempt 0\n" * 20)
    follower = FileFollower(str(path))
    lines(follower)
    follower.close()
    rest = b"x" * 99 + b"\n"
    with path.open("ab") as file:
        file.write(rest * (size // 100) + b"last words")
    path.rename(tmp_path / "out.1")
    (tmp_path / "out.0").write_bytes(b"another file\n")
    if begun_anew:
        path.write_bytes(b"attempt 1\n" * 40)
    again = FileFollower(str(path), follower.place)
    next(again.look(0))  # whoever stops in between gets the rest at the next look
    told = b"".join(block.data for block in again.look(1) if block.start.epoch == 0)
    assert told.endswith(rest + b"last words")
    assert again.place.epoch == int(begun_anew)
    assert again.state is (FileState.FOLLOWED if begun_anew else FileState.ABSENT)
    assert lines(again) == b""


def test_a_renamed_file_that_was_cut_meanwhile_is_not_taken_for_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"attempt 0\n" * 20)
    follower = FileFollower(str(path))
    lines(follower)
    follower.close()
    path.rename(tmp_path / "out.1")
    (tmp_path / "out.1").write_bytes(b"somebody else's\n" * 90)
    path.write_bytes(b"attempt 1\n" * 40)
    again = FileFollower(str(path), follower.place)
    assert lines(again) == b"attempt 1\n" * 40
    assert again.place.epoch == 1


def test_the_same_content_under_another_inode_is_the_same_file_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"a line of some length\n" * 10)
    follower = FileFollower(str(path))
    lines(follower)
    follower.close()
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes() + b"more\n")
    copy.rename(path)
    again = FileFollower(str(path), follower.place)
    assert lines(again) == b"more\n"
    assert again.place.epoch == 0


def test_a_file_that_is_not_there_yet_or_not_readable_is_a_state(tmp_path: Path) -> None:
    path = tmp_path / "out"
    follower = FileFollower(str(path))
    assert lines(follower) == b""
    assert (follower.state, str(path) in follower.problem) == (FileState.ABSENT, True)
    path.mkdir()
    assert lines(follower) == b""
    assert follower.state is FileState.BROKEN
    path.rmdir()
    path.write_bytes(b"one\n")
    assert lines(follower) == b"one\n"
    assert (follower.state, follower.problem) == (FileState.FOLLOWED, "")


def test_permission_denied_is_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\n")
    follower = FileFollower(str(path))

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)  # root, who runs these tests in places, may read everything
        assert lines(follower) == b""
        assert follower.state is FileState.DENIED
    assert lines(follower) == b"one\n"


def test_an_endless_line_comes_in_pieces_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"x" * (2 * BLOCK_BYTES + 10) + b"\nafter\n")
    blocks = list(FileFollower(str(path)).look(0))
    assert [len(block.data) for block in blocks] == [BLOCK_BYTES, BLOCK_BYTES, 17]
    assert blocks[-1].data == b"x" * 10 + b"\nafter\n"


def test_whoever_stops_between_two_blocks_gets_the_rest_at_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"y" * 1000 + b"\n" + (b"x" * 99 + b"\n") * 30_000)
    follower = FileFollower(str(path))
    first = next(follower.look(0))
    assert first.data + lines(follower) == path.read_bytes()


def test_bytes_that_appear_between_two_looks_say_after_which(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old\n")
    follower = FileFollower(str(path))
    [block] = follower.look(1000)
    assert block.after_ms is None  # it may have stood there for days
    lines(follower, 2000)
    with path.open("ab") as file:
        file.write(b"new\npar")
    [block] = follower.look(3000)
    assert (block.after_ms, block.read_ms) == (2000, 3000)
    with path.open("ab") as file:
        file.write(b"tial\n")
    [block] = follower.look(4000)
    assert block.after_ms == 2000, "the line began to appear between 2000 and 3000"


def test_what_stands_in_a_file_truncated_under_our_eyes_was_not_there_at_the_look_before(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"attempt 0\n")
    follower = FileFollower(str(path))
    lines(follower, 1000)
    path.write_bytes(b"1\n")
    [block] = follower.look(2000)
    assert (block.after_ms, block.start.epoch) == (1000, 1)


OPERATIONS = st.one_of(
    st.tuples(st.just("append"), st.binary(max_size=40)),
    st.tuples(st.just("truncate"), st.binary(max_size=40)),
    st.tuples(st.just("rotate"), st.binary(max_size=40)),
    st.tuples(st.just("look"), st.just(b"")),
    st.tuples(st.just("restart"), st.just(b"")),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=st.lists(OPERATIONS, max_size=25))
def test_places_never_go_back_and_appends_are_never_lost(tmp_path: Path, operations: list[tuple[str, bytes]]) -> None:
    path = tmp_path / "out"
    path.unlink(missing_ok=True)
    path.write_bytes(b"")
    follower = FileFollower(str(path))
    last = (0, 0)
    for operation, data in operations:
        if operation == "append":
            with path.open("ab") as file:
                file.write(data)
        elif operation == "truncate":
            path.write_bytes(data)
        elif operation == "rotate":
            path.rename(tmp_path / "old")
            path.write_bytes(data)
        elif operation == "restart":
            follower.close()
            follower = FileFollower(str(path), follower.place)
        for block in follower.look(0):
            assert (block.start.epoch, block.start.offset) >= last
            last = (block.end.epoch, block.end.offset)
            assert block.start == Place(block.start.identity, *last[:1], block.start.offset, block.start.line_no)
    for _ in follower.look(0, over=True):
        pass
    assert follower.place.offset == path.stat().st_size
    follower.close()
