"""A file is in the cache whole and right, or not at all."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from jgo.maven import Artifact, MavenContext

from infra.local import downloads
from infra.local.downloads import VerifyingResolver
from infra.local.parts import StackError

BODY = b"a jar" * 1000


class Repository:
    """A Maven repository on this machine, which can be told to misbehave."""

    def __init__(self) -> None:
        self.checksum = hashlib.sha1(BODY, usedforsecurity=False).hexdigest()
        self.refusals = 0
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = repository.checksum.encode() if self.path.endswith(".sha1") else BODY
                refused = repository.refusals > 0
                repository.refusals -= refused
                self.send_response(503 if refused else 200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setattr(downloads, "RETRY_SECONDS", 0.0)
    repository = Repository()
    thread = threading.Thread(target=repository.server.serve_forever, args=(0.02,))
    thread.start()
    yield repository
    repository.server.shutdown()
    thread.join()
    repository.server.server_close()


def download(repository: Repository, cache: Path) -> Path:
    with httpx.Client(trust_env=False) as client:
        address = f"http://127.0.0.1:{repository.server.server_port}"
        resolver = VerifyingResolver(client, print)
        context = MavenContext(resolver=resolver, repo_cache=cache, remote_repos={"here": address})
        artifact: Artifact = context.project("org.example", "thing").at_version("1.0").artifact()
        return artifact.resolve()


def test_a_whole_file_is_kept_under_its_name(repository: Repository, tmp_path: Path) -> None:
    assert download(repository, tmp_path).read_bytes() == BODY
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["thing-1.0.jar"]


def test_a_file_with_another_checksum_is_refused_and_not_kept(repository: Repository, tmp_path: Path) -> None:
    repository.checksum = "0" * 40
    with pytest.raises(StackError, match=r"thing-1\.0\.jar: checksum .* check the network and start again"):
        download(repository, tmp_path)

    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_a_repository_that_is_down_for_a_moment_is_asked_again(repository: Repository, tmp_path: Path) -> None:
    repository.refusals = 2
    assert download(repository, tmp_path).read_bytes() == BODY
