"""The MariaDB server under Slurm's accounting; nothing else uses it."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from infra.local.apt import search_path
from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.parts import PartFailed, Report

START_SECONDS = 60.0
# Accounting of a local cluster survives the death of the server, not that of the machine: much less to wait for.
INNODB = (
    "--innodb-log-file-size=16M",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-flush-method=nosync",
    "--innodb-doublewrite=0",
)
GRANTS = """\
create database if not exists slurm_acct_db;
create user if not exists slurm@'127.0.0.1' identified by 'slurm';
grant all on slurm_acct_db.* to slurm@'127.0.0.1';
"""


class AccountingDb:
    """Starts and stops MariaDB in `<folder>/slurm/mysql`."""

    DAEMON = "mariadbd"

    def __init__(self, folder: DataFolder) -> None:
        self._data = folder.part("slurm") / "mysql"
        self._socket = folder.socket("mysql.sock")
        self._user = pwd.getpwuid(os.geteuid()).pw_name
        self._daemon = Daemon(self.DAEMON, folder)

    def running(self) -> bool:
        return self._daemon.running()

    def start(self, port: int, report: Report) -> None:
        """Returns once it answers and slurmdbd's account exists."""
        if not self._daemon.running():
            self._init(report)
            self._daemon.start(self._command(port), env={"PATH": search_path()})
        self._daemon.wait_ready(lambda: self._client("select 1"), seconds=START_SECONDS)
        if not self._client(GRANTS):
            raise PartFailed("MariaDB refuses to create slurmdbd's account")

    def stop(self) -> None:
        self._daemon.stop(seconds=15.0)

    def _command(self, port: int) -> list[str]:
        program = _program("mariadbd")
        place = [f"--user={self._user}", f"--datadir={self._data}", f"--socket={self._socket}"]
        network = ["--bind-address=127.0.0.1", f"--port={port}", "--skip-name-resolve"]
        size = ["--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--performance-schema=OFF"]
        pid_file = f"--pid-file={self._data / 'mariadbd.pid'}"
        return [program, "--no-defaults", *place, pid_file, *network, *INNODB, *size]

    def _client(self, statements: str) -> bool:
        client = [_program("mariadb"), "--no-defaults", f"--socket={self._socket}", f"--user={self._user}"]
        done = subprocess.run([*client, "-e", statements], capture_output=True, timeout=30, check=False)
        return done.returncode == 0

    def _init(self, report: Report) -> None:
        """Makes the database files, beside, so that a half-made folder is never taken for a whole one."""
        if self._data.exists():
            return
        report("creating the accounting database")
        draft = self._data.with_name("mysql-draft")
        shutil.rmtree(draft, ignore_errors=True)
        root = ["--auth-root-authentication-method=socket", f"--auth-root-socket-user={self._user}", "--skip-test-db"]
        command = [_program("mariadb-install-db"), "--no-defaults", f"--datadir={draft}", f"--user={self._user}"]
        done = subprocess.run(
            [*command, *root, *INNODB], capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
        if done.returncode != 0:
            raise PartFailed(f"MariaDB's data folder can't be made: {done.stdout}{done.stderr}")
        Path(draft).rename(self._data)


def _program(name: str) -> str:
    found = shutil.which(name, path=search_path())
    if found is None:
        raise PartFailed(f"{name} is not installed")
    return found
