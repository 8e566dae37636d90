"""The one folder that holds everything of a stack, so that two stacks share nothing but the download cache."""

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from infra.local.parts import StackError

LONGEST_SOCKET_PATH = 100  # the kernel allows 107 bytes; some programs append a suffix such as ".lock"


@dataclass(frozen=True)
class DataFolder:
    """Layout of a stack's data: `run/` (pids), `log/`, and one folder a part."""

    root: Path

    @classmethod
    def default(cls) -> "DataFolder":
        """`$RECOVERY_DATA`, else `.local` in the checkout (in the working directory for an installed package)."""
        chosen = os.environ.get("RECOVERY_DATA")
        if chosen:
            return cls(Path(chosen).resolve())
        checkout = Path(__file__).resolve().parents[2]
        base = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
        return cls(base / ".local")

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def log(self) -> Path:
        return self.root / "log"

    def create(self) -> None:
        """Makes the folder; private, because it holds passwords and keys."""
        for folder in (self.root, self.run, self.log):
            folder.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o711)

    def part(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def socket(self, name: str) -> Path:
        """A place for a Unix socket: in `run/`, or in a short private folder when the kernel's limit is near."""
        path = self.run / name
        if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
            return path
        short = self._short_folder()
        short.mkdir(mode=0o711, exist_ok=True)
        if short.stat().st_uid != os.geteuid():
            raise StackError(f"{short} belongs to another user; set RECOVERY_DATA to a shorter path")
        return short / name

    def discard_sockets(self) -> None:
        """Removes the short folder, if there was need of one; for when nothing of the stack runs any more."""
        shutil.rmtree(self._short_folder(), ignore_errors=True)

    def _short_folder(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"recovery-{os.geteuid()}-{digest}"
