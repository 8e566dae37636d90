"""Runs Slurm's commands: a clean environment, a time limit on each, and no guess about what did not answer.

A user's `SQUEUE_FORMAT` or `SLURM_TIME_FORMAT` changes what the commands print, so none of it is inherited. Times are
asked for in seconds since the epoch, which need no time zone. Commands that change something run under `timeout`,
which outlives us: if this process is killed in the middle, its command still ends within the same bound.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recovery.settings import SlurmSettings
from sac.slurm.answers import Known, Unknown
from schemas.vocabulary import Outcome

DETAIL = 1000
INHERITED = ("HOME", "USER", "LOGNAME", "KRB5CCNAME")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KILL_AFTER_S = 1


@dataclass(frozen=True)
class Sent:
    """How a command that changes something came back. Accepted is Slurm's word, not proof of an effect."""

    outcome: Outcome
    detail: str


class SlurmCommands:
    """The commands of one cluster."""

    def __init__(self, conf_path: Path | None, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._environment = environment(conf_path)

    @classmethod
    def of(cls, settings: SlurmSettings) -> SlurmCommands:
        return cls(settings.conf_path, settings.command_timeout_s)

    def read(self, *argv: str, may_be_empty: bool = False) -> Known[str] | Unknown:
        """What a command prints. Unknown for a bad exit code, a timeout, and (unless allowed) for nothing at all."""
        try:
            done = self._run(argv, self._timeout_s)
        except subprocess.TimeoutExpired:
            return Unknown(f"{argv[0]} did not answer within {self._timeout_s:g} s")
        except OSError as error:
            return Unknown(f"{argv[0]} can't be run: {error}")
        if done.returncode != 0:
            return Unknown(f"{argv[0]} failed with exit code {done.returncode}: {_said(done)}")
        if not done.stdout.strip() and not may_be_empty:
            return Unknown(f"{argv[0]} printed nothing: {_said(done)}")
        return Known(done.stdout)

    def send(self, *argv: str) -> Sent:
        """Run a command that changes something, once. A timeout is an unknown outcome: its effect may still arrive."""
        limit = f"{self._timeout_s:g}"
        try:
            done = self._run(("timeout", "-k", str(KILL_AFTER_S), limit, *argv), self._timeout_s + KILL_AFTER_S + 1)
        except subprocess.TimeoutExpired:
            return Sent(Outcome.UNKNOWN, f"{argv[0]} did not answer within {limit} s")
        except OSError as error:
            return Sent(Outcome.REFUSED, f"{argv[0]} can't be run: {error}")
        if done.returncode in (124, 137) or done.returncode < 0:
            return Sent(
                Outcome.UNKNOWN, f"{argv[0]} was ended after {limit} s without an answer: {_said(done)}"[:DETAIL]
            )
        if done.returncode != 0:
            said = _said(done)
            return Sent(
                Outcome.UNKNOWN if _unanswered(said) else Outcome.REFUSED, said or f"exit code {done.returncode}"
            )
        return Sent(Outcome.ACCEPTED, _said(done))

    def _run(self, argv: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )


def environment(conf_path: Path | None) -> dict[str, str]:
    """The whole environment of a Slurm command: nothing of the caller's but who and where it is."""
    clean = {name: os.environ[name] for name in INHERITED if name in os.environ}
    conf = str(conf_path) if conf_path is not None else os.environ.get("SLURM_CONF")
    if conf:
        clean["SLURM_CONF"] = conf
    path = os.environ.get("PATH", "")
    return clean | {
        "PATH": f"{path}:{SYSTEM_PATH}" if path else SYSTEM_PATH,
        "LC_ALL": "C.UTF-8",
        "SLURM_TIME_FORMAT": "%s",
    }


def _unanswered(said: str) -> bool:
    """The command gave up, but slurmctld may have taken the request: such words say nothing about an effect."""
    words = said.lower()
    if "connect failure" in words:  # never sent
        return False
    return any(
        sign in words for sign in ("timed out", "unable to contact", "zero bytes", "connection", "communication")
    )


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(f"{done.stderr} {done.stdout if len(done.stdout) < DETAIL else ''}".split())[:DETAIL]
