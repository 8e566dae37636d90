"""`recovery projections rebuild`."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from projections.store import Batch, Source, Store, prepare
from recovery.cli import app
from tests.projections.parts import dump
from tests.projections.test_store import records

pytestmark = pytest.mark.stack

SOURCE = Source("journal", 0)


def test_it_empties_every_table_and_sends_the_runner_to_the_beginning(url: str, engine: Engine) -> None:
    store = Store(engine)
    store.offsets({SOURCE: 0})
    store.apply(prepare([Batch(SOURCE, 0, tuple(records(9)))]))
    answer = CliRunner().invoke(app, ["projections", "rebuild", "--yes"], env={"RECOVERY_POSTGRES__URL": url})
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert not any(dump(engine).values())
    assert store.offsets({SOURCE: 0}) == {SOURCE: 0}


def test_without_a_yes_nothing_is_touched(url: str, engine: Engine) -> None:
    store = Store(engine)
    store.offsets({SOURCE: 0})
    store.apply(prepare([Batch(SOURCE, 0, tuple(records(9)))]))
    answer = CliRunner().invoke(app, ["projections", "rebuild"], input="n\n", env={"RECOVERY_POSTGRES__URL": url})
    assert answer.exit_code == 1
    assert len(dump(engine)["audit_rows"]) == 9


def test_a_database_that_does_not_answer_is_named() -> None:
    nowhere = {"RECOVERY_POSTGRES__URL": "postgresql+psycopg://nobody@127.0.0.1:1/none"}
    answer = CliRunner().invoke(app, ["projections", "rebuild", "--yes"], env=nowhere)
    assert answer.exit_code == 2
    assert "PostgreSQL does not answer" in answer.stderr
