"""Brings the whole thing up on this machine, and takes it down: what `recovery up` and `recovery down` do."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import OperationalError

from infra.local.folder import DataFolder
from infra.local.parts import Report, StackError
from infra.local.stack import Stack
from infra.local.supervisor import Supervisor
from infra.local.tender import Tended
from projections.migrate import upgrade
from recovery.launch import NotReadyError, children, wait_ready
from recovery.run_files import forget_dead
from recovery.settings import Settings, load_settings
from recovery.topics import TopicsError, create_topics
from schemas.registry import RegistryError, require_compatibility

READY_TIMEOUT_S = 90.0


class BringUpError(Exception):
    """Something did not start. What did is left running for a look; `bring_down` ends it."""


def bring_up(config: Path | None, report: Report) -> Settings:
    """Start the stack and every process of ours, wait until all are ready, and return the settings in force.

    Processes of an earlier call are ended and started anew. `report` gets a sentence of progress at a time, from any
    thread. Raises BringUpError, and SettingsError.
    """
    before = load_settings(config)
    with _alone(before.data, report):
        return _bring_up(before.data, config, report)


def _bring_up(data: Path, config: Path | None, report: Report) -> Settings:
    try:
        stack = Stack(data)
        stack.start(report)
        settings = load_settings(config)  # the stack's addresses are known now
        _prepare(settings, report)
        started = children(settings, config)
        supervisor = Supervisor(settings.data)
        supervisor.stop()
        forget_dead(settings.data)
        supervisor.start(started, report, [Tended(part.name, part.daemons) for part in stack.parts.values()])
        wait_ready(settings.data, {child.name for child in started}, READY_TIMEOUT_S, report)
    except (StackError, TopicsError, RegistryError, OperationalError, NotReadyError) as error:
        raise BringUpError(str(error)) from error
    return settings


def _prepare(settings: Settings, report: Report) -> None:
    """Make what processes expect to find: topics, the registry's rule, tables."""
    created = create_topics(settings.kafka.bootstrap)
    report(f"{len(created)} topics created" if created else "topics are as the catalogue has them")
    require_compatibility(settings.registry.url)
    upgrade(settings.postgres.url)
    report("tables are current")


def bring_down(data: Path, report: Report) -> None:
    """End every process of ours, then the stack; its data stays. Raises BringUpError."""
    if not data.exists():
        return
    with _alone(data, report):
        _bring_down(data, report)


def _bring_down(data: Path, report: Report) -> None:
    try:
        report("ending the processes")
        Supervisor(data).stop()
        forget_dead(data)
        report("ending the stack")
        Stack(data).stop()
    except StackError as error:
        raise BringUpError(str(error)) from error


@contextmanager
def _alone(data: Path, report: Report) -> Iterator[None]:
    """One at a time in a data folder: what one ends, another would be starting behind its back."""
    folder = DataFolder(data.resolve())
    folder.create()
    with (folder.run / "up.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another `recovery up` or `recovery down` to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
