"""One data folder holds a stack, wherever it lies, and says so when nothing is up in it."""

import json
from pathlib import Path

import pytest

from infra.local.endpoints import Endpoints, StackNotUp
from infra.local.folder import LONGEST_SOCKET_PATH, DataFolder
from infra.local.kafka import draw_cluster_id
from infra.local.ports import Ports, is_free


def test_the_environment_chooses_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOVERY_DATA", str(tmp_path / "elsewhere"))
    assert DataFolder.default().root == tmp_path / "elsewhere"
    monkeypatch.delenv("RECOVERY_DATA")
    assert DataFolder.default().root.name == ".local"


def test_sockets_stay_short_however_deep_the_folder_is(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["folder-with-a-long-name"] * 5)
    folders = [DataFolder(tmp_path), DataFolder(deep), DataFolder(deep / "other")]
    sockets = [folder.socket("munge.sock") for folder in folders]

    assert all(len(str(socket)) <= LONGEST_SOCKET_PATH for socket in sockets)
    assert len(set(sockets)) == 3
    assert sockets[1] == DataFolder(deep).socket("munge.sock")
    for folder in folders:
        folder.discard_sockets()
    assert not sockets[1].parent.exists()


def test_ports_are_remembered(tmp_path: Path) -> None:
    ports = Ports(tmp_path / "ports.json")
    first = ports.free("kafka", "registry")

    assert len(set(first)) == 2
    assert all(is_free(port) for port in first)
    assert Ports(tmp_path / "ports.json").free("registry", "kafka") == list(reversed(first))
    assert ports.known("postgres") is None


def test_endpoints_of_a_stack_that_is_not_up_name_the_command(tmp_path: Path) -> None:
    with pytest.raises(StackNotUp, match=r"no local stack is up in .*; start it with `recovery up`"):
        Endpoints.load(tmp_path)
    (tmp_path / "endpoints.json").write_text(json.dumps({"kafka": "127.0.0.1:1"}))
    with pytest.raises(StackNotUp, match="postgres, registry of the local stack"):
        Endpoints.load(tmp_path)


def test_a_cluster_id_never_looks_like_an_option() -> None:
    drawn = [draw_cluster_id() for _ in range(2000)]
    assert not [one for one in drawn if one.startswith("-")]
    assert len(set(drawn)) == 2000
