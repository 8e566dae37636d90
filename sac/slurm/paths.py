"""Where a batch job's output goes: the patterns of `sbatch --output`, expanded as slurmd expands them.

Slurm 22.05 gives patterns in JSON (nothing at all for the default), and `scontrol show job` expands only some of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

NO_VAL = 4294967294
_PATTERN = re.compile(r"%(\d*)([%a-zA-Z])")
_LONGEST_PAD = 10


@dataclass(frozen=True)
class OutputOf:
    """What a pattern may speak of. The batch script runs on the job's first node, as task 0."""

    job_id: int
    array_job_id: int | None
    array_task_id: int | None
    name: str
    user: str
    node: str
    folder: str

    def path(self, pattern: str) -> str:
        """The absolute path of a pattern; the empty pattern is sbatch's default."""
        if not pattern:
            pattern = "slurm-%j.out" if self.array_job_id is None else "slurm-%A_%a.out"
        # A backslash anywhere turns the expansion off, and disappears itself.
        text = pattern.replace("\\", "") if "\\" in pattern else _PATTERN.sub(self._expanded, pattern)
        return str(PurePosixPath(self.folder) / text)

    def _expanded(self, match: re.Match[str]) -> str:
        width, letter = min(int(match.group(1) or 0), _LONGEST_PAD), match.group(2)
        numbers = {
            "A": self.array_job_id if self.array_job_id is not None else self.job_id,
            "a": self.array_task_id if self.array_task_id is not None else NO_VAL,
            "j": self.job_id,
            "J": self.job_id,
            "n": 0,
            "t": 0,
        }
        if letter in numbers:
            return f"{numbers[letter]:0{width}d}"
        texts = {"x": self.name, "u": self.user, "N": self.node.partition(".")[0], "s": "batch", "%": "%"}
        return texts.get(letter, match.group())


def log_paths(output: OutputOf, standard_output: str, standard_error: str) -> tuple[str, ...]:
    """StdOut and, where it is another file, StdErr."""
    out = output.path(standard_output)
    err = output.path(standard_error) if standard_error else out
    return tuple(path for path in dict.fromkeys((out, err)) if path != "/dev/null")
