"""The ranks of a job, averaging numbers over real TCP connections through rank 0.

When a rank dies its connection breaks, rank 0 sees it and goes, and so all the others see it: as with NCCL.
"""

import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from infra.local.training.lines import Voice

JOIN_SECONDS = 60.0
_COUNT = struct.Struct("!I")
_HELLO = struct.Struct("!I64s")  # rank, node


class PeerLost(Exception):
    """The connection to a peer broke. `peer` is its node and port as NCCL writes it: node1<41530>."""

    def __init__(self, peer: str) -> None:
        super().__init__(f"connection to {peer} closed")
        self.peer = peer


class CollectiveTimeout(Exception):
    """A peer did not take part in an all-reduce in time."""


@dataclass(frozen=True)
class Link:
    """A connection to one peer. Both methods raise `PeerLost` or `CollectiveTimeout`."""

    connection: socket.socket
    peer: str

    def send(self, values: list[float]) -> None:
        try:
            self.connection.sendall(_COUNT.pack(len(values)) + struct.pack(f"!{len(values)}d", *values))
        except TimeoutError as error:
            raise CollectiveTimeout from error
        except OSError as error:
            raise PeerLost(self.peer) from error

    def receive(self) -> list[float]:
        try:
            (count,) = _COUNT.unpack(_exactly(self.connection, _COUNT.size))
            return list(struct.unpack(f"!{count}d", _exactly(self.connection, count * 8)))
        except TimeoutError as error:
            raise CollectiveTimeout from error
        except OSError as error:
            raise PeerLost(self.peer) from error


class Group:
    """The links of one rank: rank 0 has one to every other, the others have one to rank 0."""

    def __init__(self, rank: int, size: int, links: list[Link], timeout: float) -> None:
        self.rank = rank
        self.size = size
        self._links = links
        for link in links:
            link.connection.settimeout(timeout)
            link.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def join(cls, voice: Voice, size: int, meeting_point: Path, timeout: float) -> "Group":
        """Meets the other ranks through a file in which rank 0 writes where it listens. Raises `CollectiveTimeout`.

        All virtual nodes are this machine, so the address is the loopback's. `timeout` bounds each later all-reduce.
        """
        links = _welcome(voice.node, size, meeting_point) if voice.rank == 0 else [_knock(voice, meeting_point)]
        return cls(voice.rank, size, links, timeout)

    def mean(self, values: list[float]) -> list[float]:
        """The mean over all ranks, number by number. Raises `PeerLost` or `CollectiveTimeout`."""
        if self.rank != 0:
            self._links[0].send(values)
            return self._links[0].receive()
        rows = [values, *(link.receive() for link in self._links)]
        means = [sum(column) / self.size for column in zip(*rows, strict=True)]
        for link in self._links:
            link.send(means)
        return means

    def close(self) -> None:
        for link in self._links:
            link.connection.close()


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError("closed by peer")
        data += chunk
    return data


def _welcome(node: str, size: int, meeting_point: Path) -> list[Link]:
    """The links to all other ranks, in the order of rank: sums must come out the same in every run."""
    links: dict[int, Link] = {}
    with socket.create_server(("127.0.0.1", 0), backlog=size) as server:
        server.settimeout(JOIN_SECONDS)
        draft = meeting_point.with_suffix(".tmp")
        draft.write_text(f"{server.getsockname()[1]} {node}")
        draft.replace(meeting_point)
        while len(links) < size - 1:
            try:
                connection, (_, port) = server.accept()
            except TimeoutError as error:
                raise CollectiveTimeout from error
            connection.settimeout(JOIN_SECONDS)
            rank, peer = _HELLO.unpack(_exactly(connection, _HELLO.size))
            links[rank] = Link(connection, f"{peer.rstrip(bytes(1)).decode()}<{port}>")
    meeting_point.unlink()
    return [links[rank] for rank in sorted(links)]


def _knock(voice: Voice, meeting_point: Path) -> Link:
    deadline = time.monotonic() + JOIN_SECONDS
    while not meeting_point.exists():
        if time.monotonic() > deadline:
            raise CollectiveTimeout
        time.sleep(0.02)
    port, node = meeting_point.read_text().split()
    try:
        connection = socket.create_connection(("127.0.0.1", int(port)), timeout=JOIN_SECONDS)
        connection.sendall(_HELLO.pack(voice.rank, voice.node.encode()))
    except OSError as error:
        raise PeerLost(f"{node}<{port}>") from error
    return Link(connection, f"{node}<{port}>")
