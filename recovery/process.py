"""The harness of every long-running process: signals, health, metrics, run file, exit codes.

A room gives a body; the harness runs it in the main thread until it returns. On SIGTERM or SIGINT it asks the body to
stop; a second signal ends the process at once. What the process exits with says what whoever started it should do.
"""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import structlog

from recovery.health import Health, serve_health
from recovery.logging import configure_logging
from recovery.run_files import RunFile, RunRecord, birth
from recovery.settings import Settings, SettingsError

EXIT_CLEAN = 0
EXIT_SETTINGS = 2  # do not start it again: somebody must correct a setting
EXIT_INTERNAL = 70  # start it again, with back-off
EXIT_FENCED = 75  # start it again: another one took its place meanwhile, nothing is wrong with it

_NO_SIGNAL = 0
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
"""No setting is wrong where there is no room just now: it may be there at the next start."""

log = structlog.get_logger(__name__)


class FencedError(Exception):
    """Another process took this one's place (its transactional id, its lease): exit at once with EXIT_FENCED."""


class Stop:
    """The wish that this process stops. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        """Return whether the process should stop."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep for `timeout_s` seconds or until the process should stop; return whether it should."""
        return self._event.wait(timeout_s)

    def on_request(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, in another thread, when the process should stop: for loops that a library owns."""
        with self._lock:
            if not self.requested:
                self._callbacks.append(callback)
                return
        callback()

    def request(self) -> None:
        """Ask the process to stop."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            self._event.set()
        for callback in callbacks:
            callback()


@dataclass(frozen=True)
class ProcessContext:
    """What the harness gives to a body."""

    process: str
    slot: int | None
    settings: Settings
    stop: Stop
    health: Health
    announce: Callable[[str, str], None]
    """Make an address known in the run file, such as ("http", "http://127.0.0.1:4001")."""


Body = Callable[[ProcessContext], None]


def run_process(process: str, settings: Settings, body: Body, *, slot: int | None = None) -> int:
    """Run `body` in the main thread and return the exit code.

    The body returns when `stop` is requested or its work is over, raises FencedError when another took its place, and
    raises SettingsError for what only the operator can correct. Anything else it raises is logged with its stack.
    """
    configure_logging(process, slot)
    stop = Stop()
    try:
        with _signals(stop), _context(process, settings, slot, stop) as context:
            body(context)
    except SettingsError as error:
        log.error("stopped by a setting", error=str(error), next="correct it and start again")
        return EXIT_SETTINGS
    except FencedError as error:
        log.warning("fenced", error=str(error), next="start again")
        return EXIT_FENCED
    except Exception:
        log.exception("failed", next="start again, with back-off")
        return EXIT_INTERNAL
    log.info("stopped")
    return EXIT_CLEAN


@contextmanager
def _context(process: str, settings: Settings, slot: int | None, stop: Stop) -> Iterator[ProcessContext]:
    health = Health()
    host = settings.metrics.host
    with serve_health(health, host, settings.metrics.port) as port:
        record = RunRecord(
            process=process,
            slot=slot,
            pid=os.getpid(),
            born=birth(os.getpid()) or 0,
            host=host,
            port=port,
            started_ms=time.time_ns() // 1_000_000,
            addresses={},
        )
        try:
            run_file = RunFile(settings.data, record)
        except OSError as error:
            if error.errno in _PASSING:
                raise
            raise SettingsError(f"data is {str(settings.data)!r}, where nothing can be written: {error}") from error
        log.info("started", pid=record.pid, health=record.url)
        try:
            yield ProcessContext(process, slot, settings, stop, health, run_file.announce)
        finally:
            health.not_ready("stopping")
            run_file.remove()


@contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    """Turn the first SIGTERM or SIGINT into a request; give the second its default meaning back.

    A handler interrupts the main thread anywhere, also where it holds a lock that a request needs. So the interpreter
    writes a byte (also when a library has put its own handler in the place of ours), and a thread makes the request.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGINT)}

    def handle(_signum: int, _frame: FrameType | None) -> None:
        for known in before:
            signal.signal(known, signal.SIG_DFL)

    def carry() -> None:
        while (number := os.read(reader, 1)[0]) != _NO_SIGNAL:
            if number in before and not stop.requested:
                log.info("stopping", signal=signal.Signals(number).name)
                stop.request()

    carrier = threading.Thread(target=carry, name="signals", daemon=True)
    carrier.start()
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for signum in before:
        signal.signal(signum, handle)
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(woken)
        os.write(writer, bytes([_NO_SIGNAL]))
        carrier.join(timeout=5)
        os.close(reader)
        os.close(writer)
