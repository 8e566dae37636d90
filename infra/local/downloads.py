"""Java programs from Maven Central, cached for every stack of this user and verified complete before use.

jgo resolves the dependencies; the download itself is ours, because a file must appear under its name only when it is
whole and its checksum was right: another stack may be reading the same cache.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
from jgo.maven import Artifact, MavenContext, PythonResolver

from infra.local.parts import Report, StackError
from recovery.cache import cache_folder

KAFKA_VERSION = "4.2.2"
"""Not one of 4.3 or 4.4: where a broker was killed they may forget to end a transaction (KAFKA-20734)."""
APICURIO_VERSION = "3.3.3"
KAFKA_COORDINATES = (f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", "org.slf4j:slf4j-simple:1.7.36")
TRIES = 3
RETRY_SECONDS = 1.0  # longer after each try
REPORT_EVERY_SECONDS = 2.0


def kafka_classpath(report: Report) -> list[Path]:
    """The broker's jars, downloaded the first time (44 MB). Raises `StackError` when that fails."""
    cache = cache_folder()
    manifest = cache / f"kafka-{KAFKA_VERSION}.json"
    with _locked(cache, "kafka"):
        jars = _from_manifest(cache, manifest)
        if jars is None:
            report(f"downloading Kafka {KAFKA_VERSION} (44 MB, once)")
            jars = _resolve_kafka(cache, report)
            sizes = {str(jar.relative_to(cache)): jar.stat().st_size for jar in jars}
            draft = manifest.with_suffix(".tmp")
            draft.write_text(json.dumps(sizes, indent=1))
            draft.replace(manifest)
    return jars


def apicurio_home(report: Report) -> Path:
    """The registry's folder (with `quarkus-run.jar`), downloaded the first time (158 MB). Raises `StackError`."""
    cache = cache_folder()
    home = cache / f"apicurio-{APICURIO_VERSION}"
    with _locked(cache, "apicurio"):
        if not home.is_dir():
            report(f"downloading Apicurio Registry {APICURIO_VERSION} (158 MB, once)")
            with _client() as client:
                context = _context(cache, client, report)
                component = context.project("io.apicurio", "apicurio-registry-app").at_version(APICURIO_VERSION)
                archive = component.artifact(classifier="all", packaging="tar.gz").resolve()
            _unpack(archive, home)
            archive.unlink()
    return home


def _client() -> httpx.Client:
    """No compression on the way: checksums are of the files as published."""
    return httpx.Client(timeout=30.0, follow_redirects=True, headers={"accept-encoding": "identity"})


def _resolve_kafka(cache: Path, report: Report) -> list[Path]:
    with _client() as client, ThreadPoolExecutor(6) as pool:
        context = _context(cache, client, report)
        wanted = [context.create_dependency(coordinate) for coordinate in KAFKA_COORDINATES]
        inputs, others = context.resolver.resolve(wanted)
        return list(pool.map(lambda dependency: dependency.artifact.resolve(), [*inputs, *others]))


def _from_manifest(cache: Path, manifest: Path) -> list[Path] | None:
    if not manifest.exists():
        return None
    sizes: dict[str, int] = json.loads(manifest.read_text())
    whole = all((cache / name).is_file() and (cache / name).stat().st_size == size for name, size in sizes.items())
    return [cache / name for name in sizes] if whole else None


def _context(cache: Path, client: httpx.Client, report: Report) -> MavenContext:
    return MavenContext(resolver=VerifyingResolver(client, report), repo_cache=cache / "maven")


class VerifyingResolver(PythonResolver):
    """Downloads beside, compares the published SHA-1, then renames."""

    def __init__(self, client: httpx.Client, report: Report) -> None:
        super().__init__()
        self._client = client
        self._report = report

    def download(self, artifact: Artifact) -> Path:
        target = artifact.cached_path
        assert target is not None
        repository = next(iter(artifact.context.remote_repos.values()))
        url = f"{repository}/{artifact.component.path_prefix.as_posix()}/{artifact.filename}"
        target.parent.mkdir(parents=True, exist_ok=True)
        for tried in range(1, TRIES + 1):
            try:
                _fetch(self._client, url, target, self._report)
                return target
            except (httpx.HTTPError, StackError) as error:
                if tried == TRIES:
                    raise StackError(f"can't download {url}: {error}; check the network and start again") from error
                self._report(f"downloading {target.name} failed ({error}); again in {tried * RETRY_SECONDS:g} s")
                time.sleep(tried * RETRY_SECONDS)
        raise AssertionError("unreachable")


def _fetch(client: httpx.Client, url: str, target: Path, report: Report) -> None:
    expected = client.get(f"{url}.sha1").raise_for_status().text.split()[0]
    digest = hashlib.sha1(usedforsecurity=False)
    reported = time.monotonic()
    draft = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with client.stream("GET", url) as response, draft.open("wb") as file:
            response.raise_for_status()
            whole = int(response.headers.get("content-length", 0))
            for chunk in response.iter_bytes(1 << 18):
                file.write(chunk)
                digest.update(chunk)
                if time.monotonic() - reported > REPORT_EVERY_SECONDS:
                    report(f"downloading {target.name}: {file.tell() >> 20} of {whole >> 20} MB")
                    reported = time.monotonic()
        if digest.hexdigest() != expected:
            raise StackError(f"checksum of {target.name} is {digest.hexdigest()}, not {expected}")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _unpack(archive: Path, home: Path) -> None:
    draft = Path(tempfile.mkdtemp(dir=home.parent))
    try:
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(draft)], check=True, capture_output=True, timeout=300)
        [launcher] = draft.rglob("quarkus-run.jar")
        launcher.parent.rename(home)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _locked(cache: Path, what: str) -> Iterator[None]:
    """One downloader at a time for each user, so that two stacks starting together share the work."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
