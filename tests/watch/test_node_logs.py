"""Kernel and system logs of nodes: which lines become facts, of which node, and that none is read twice or skipped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import pytest
import structlog

from recovery.metrics import REGISTRY
from schemas.bookkeeping import SourceRead
from schemas.nodes import NodeAllocated, NodeFact, NodeFaultSeen, NodeFaultTold, node_of
from schemas.vocabulary import FaultClass, Remedy, Scope, Witness
from streams.decide.nodes import decide_node
from streams.watch.nodes.lines import OLDEST_MS, NodeLines, Where, host_of, node_name
from streams.watch.nodes.logs import DISCOVER_MS, NodeLogs, node_in
from streams.watch.throttle import MOST_OF_ORIGIN, RENEWED_MS, Throttle
from tests.watch.parts import T0, attempt, matcher

XID = "Aug  1 10:00:05 node2 kernel: [81.2] NVRM: Xid (PCI:0000:06:00): 79, pid=1, GPU has fallen off the bus.\n"
OOM = "Aug  1 10:00:06 node2 kernel: Out of memory: Killed process 8156 (python3) total-vm:123kB\n"
QUIET = "Aug  1 10:00:01 node2 kernel: usb 1-1: new high-speed USB device\n"
XID_MS = int(datetime(2026, 8, 1, 10, 0, 5, tzinfo=UTC).timestamp() * 1000)


def lines(zone: tzinfo = UTC) -> NodeLines:
    return NodeLines(matcher(), "local", zone, 2_000)


class Site:
    """Node logs in a folder, read by one watch after another."""

    def __init__(self, folder: Path, pattern: str = "{node}/kern.log", *, host: str | None = None) -> None:
        self.folder = folder
        self.pattern = f"{folder}/{pattern}" if host is None else f"{{host}}:{folder}/{pattern}"
        self.host = host or "login1"
        self.positions: dict[str, SourceRead] = {}
        self.now_ms = T0 + 10_000
        self.logs = self.start()

    def start(self) -> NodeLogs:
        return NodeLogs((self.pattern,), 0.5, lines(), self.positions, self.host)

    def restart(self) -> None:
        self.note()
        self.logs.close()
        self.logs = self.start()

    def note(self) -> None:
        self.positions |= {one.source: one for one in self.logs.moved(self.now_ms)}

    def append(self, path: str, *text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as log:
            log.writelines(text)

    def turn(self, pass_ms: int = 1_000) -> list[NodeFaultSeen]:
        self.now_ms += pass_ms
        return list(self.logs.turn(self.now_ms))


def names(facts: Sequence[NodeFaultSeen]) -> list[tuple[str, str]]:
    return [(fact.fault.node, fact.fault.signature) for fact in facts]


def test_a_fault_in_a_nodes_log_is_the_nodes_and_says_where_it_stands(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.append("node2/kern.log", QUIET, XID)
    site.append("node1/kern.log", QUIET)
    [fact] = site.turn()
    fault = fact.fault
    assert (fault.cluster, fault.node, fault.witness) == ("local", "node2", Witness.NODE_LOG)
    assert (fault.fault_class, fault.scope) == (FaultClass.GPU_HARDWARE, Scope.NODE)
    assert fault.remedy is Remedy.RESTART_EXCLUDING_NODE
    evidence = fault.evidence
    assert (evidence.file, evidence.line_no) == (str(tmp_path / "node2/kern.log"), 2)
    assert (evidence.offset, evidence.line_ms, evidence.node) == (len(QUIET), XID_MS, "node2")
    assert fault.at_ms == XID_MS
    assert (fact.position.source, fact.position.offset) == (f"file:{tmp_path}/node2/kern.log", len(QUIET))


def test_reading_goes_on_after_a_restart_and_a_line_read_again_has_its_identity(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.append("node2/kern.log", XID)
    [first] = site.turn()
    site.logs.close()
    site.logs = site.start()  # killed before it wrote how far it had read
    [again] = site.turn()
    assert (again.event_id, again.position) == (first.event_id, first.position)
    site.restart()
    assert site.turn() == []
    site.append("node2/kern.log", OOM)
    assert names(site.turn()) == [("node2", "host-oom")]


def test_a_log_that_appears_later_is_found(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.turn() == []
    site.append("node3/kern.log", XID.replace("node2", "node3"))
    assert names(site.turn(DISCOVER_MS)) == [("node3", "xid-off-the-bus")]


def test_a_log_whose_name_no_event_could_hold_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.append("node2/kern.log", XID)
    odd = tmp_path / os.fsdecode(b"node\xff")
    odd.mkdir()
    (odd / "kern.log").write_text(XID)
    assert names(site.turn()) == [("node2", "xid-off-the-bus")]
    site.note()
    assert list(site.positions) == [f"file:{tmp_path}/node2/kern.log"]


def test_in_a_file_of_many_nodes_each_line_names_its_own(tmp_path: Path) -> None:
    site = Site(tmp_path, "all.log")
    site.append("all.log", XID, XID.replace("node2", "node3.cluster.lan"), XID.replace("Aug  1 10:00:05 node2 ", ""))
    assert names(site.turn()) == [("node2", "xid-off-the-bus"), ("node3", "xid-off-the-bus")]


def test_a_host_keeps_its_domain_where_two_nodes_may_differ_by_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.append("node2.cluster.lan/kern.log", XID)
    [fact] = site.turn()
    assert (fact.fault.node, fact.fault.evidence.node) == ("node2", "node2.cluster.lan")
    assert node_of(fact) == node_of(NodeAllocated("", "", attempt(0), "node2.cluster.lan", T0, T0))


def test_machines_with_a_log_of_the_same_name_keep_their_own_places_and_lines(tmp_path: Path) -> None:
    named = "2026-08-01T10:00:05Z NVRM: Xid (PCI:0000:06:00): 79, pid=1, GPU has fallen off the bus.\n"
    sites = [Site(tmp_path / name, "kern.log", host=f"{name}.cluster.lan") for name in ("node2", "node3")]
    facts = []
    for site in sites:
        site.append("kern.log", named)
        facts += site.turn()
        site.note()
    assert names(facts) == [("node2", "xid-off-the-bus"), ("node3", "xid-off-the-bus")]
    assert [fact.position.source for fact in facts] == [
        f"file:{name}:{tmp_path}/{name}/kern.log" for name in ("node2", "node3")
    ]
    assert [list(site.positions) for site in sites] == [[fact.position.source] for fact in facts]
    assert facts[0].fault.evidence.file == f"{tmp_path}/node2/kern.log"
    sites[0].restart()
    assert sites[0].turn() == [], "it goes on from its own place"


def test_what_a_node_can_not_witness_is_left_to_the_jobs_own_output() -> None:
    said = [
        "Aug  1 10:00:05 node2 cron[8]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.",
        "Aug  1 10:00:05 node2 python[8]: ModuleNotFoundError: No module named 'x'",
        "Aug  1 10:00:05 node2 kernel: NVRM: Xid (PCI:0000:9b:00): 63, Row Remapper: New row marked for remapping",
        "Aug  1 10:00:05 node2 slurmd[8]: srun: error: node7: task 0: Out Of Memory",
    ]
    text = "".join(f"{line}\n" for line in said).encode()
    assert names(list(lines().faults(text, b"", Where("file:x", 0, 0, 0, XID_MS, "node2")))) == []


def test_what_is_too_old_when_it_is_read_concerns_nobody() -> None:
    for age_ms, kept in ((OLDEST_MS - 1_000, 1), (OLDEST_MS + 1_000, 0)):
        where = Where("file:x", 0, 0, 0, XID_MS + age_ms, "node2")
        assert len(list(lines().faults(XID.encode(), b"", where))) == kept


def test_a_flood_of_one_nodes_lines_is_kept_small_and_hides_no_other_node() -> None:
    own = lines()
    flood = list(own.faults(XID.encode() * 5_000, b"", Where("file:x", 0, 0, 0, XID_MS, None)))
    assert 0 < len(flood) <= 64
    other = XID.replace("node2", "node3").encode()
    assert names(list(own.faults(other, b"", Where("file:x", 0, 9**9, 0, XID_MS, None)))) == [
        ("node3", "xid-off-the-bus")
    ]


UPTIME = "[   81.234567] NVRM: Xid (PCI:0000:06:00): 79, pid=1, GPU has fallen off the bus.\n"


def counted(why: str) -> float:
    return REGISTRY.get_sample_value(f"recovery_watch_node_faults_{why}_total") or 0.0


def test_a_line_without_a_time_is_of_now_only_if_it_was_seen_to_appear(tmp_path: Path) -> None:
    site, before = Site(tmp_path), counted("untimed")
    site.append("node2/kern.log", UPTIME, "[99999.2] usb ok\n", UPTIME)
    with structlog.testing.capture_logs() as said:
        assert site.turn() == [], "nobody knows how old they are"
    assert counted("untimed") == before + 2
    assert [one["source"] for one in said if one["log_level"] == "warning"] == [f"file:{tmp_path}/node2/kern.log"]
    site.append("node2/kern.log", UPTIME)
    [fact] = site.turn()
    assert (fact.fault.at_ms, fact.fault.evidence.line_ms) == (site.now_ms, None)


def test_a_zone_that_makes_new_lines_hours_old_is_said_once_a_source() -> None:
    own, before = lines(timezone(timedelta(hours=2))), counted("old")
    where = Where("file:x", 0, 0, 0, XID_MS + 1_000, "node2", after_ms=XID_MS)
    with structlog.testing.capture_logs() as said:
        assert list(own.faults(XID.encode() * 2, b"", where)) == []
        assert list(own.faults(XID.encode(), b"", replace(where, source="file:y", after_ms=None))) == []
    assert counted("old") == before + 3
    [warning] = said
    assert (warning["source"], warning["seconds_old"]) == ("file:x", 7_201)
    assert "watch.time_zone" in warning["next"]


def test_a_stamp_of_a_time_to_come_is_none() -> None:
    own = lines(timezone(timedelta(hours=-2)))
    where = Where("file:x", 0, 0, 0, XID_MS + 1_000, "node2", after_ms=XID_MS)
    with structlog.testing.capture_logs() as said:
        [fact] = own.faults(XID.encode(), b"", where)
        assert list(own.faults(XID.encode(), b"", replace(where, after_ms=None))) == []
    assert (fact.fault.at_ms, fact.fault.evidence.line_ms) == (where.read_ms, None)
    assert [one["seconds_old"] for one in said if "seconds_old" in one] == [-7_199]
    ahead = replace(where, read_ms=XID_MS - 1_500)
    [fact] = lines().faults(XID.encode(), b"", ahead)
    assert fact.fault.at_ms == XID_MS, "clocks differ a little"


def test_a_line_without_a_time_that_came_while_watch_was_away_is_younger_than_its_last_look(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.append("node2/kern.log", QUIET)
    site.turn()
    site.restart()
    site.append("node2/kern.log", UPTIME)
    assert len(site.turn(60_000)) == 1
    site.restart()
    site.append("node2/kern.log", UPTIME)
    before = counted("untimed")
    assert site.turn(OLDEST_MS + 1_000) == [], "it may have been written an hour ago"
    assert counted("untimed") == before + 1


def test_a_backlog_that_a_restart_breaks_off_stays_one(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.append("node2/kern.log", QUIET * 40_000, UPTIME)
    assert site.turn() == []
    site.restart()
    assert site.turn() == [], "what was not read yet was there before"
    site.append("node2/kern.log", UPTIME)
    assert len(site.turn()) == 1


def test_the_first_lines_of_a_log_that_was_rotated_were_seen_to_appear(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.append("node2/kern.log", QUIET)
    site.turn()
    (tmp_path / "node2/kern.log").rename(tmp_path / "node2/kern.log.1")
    site.append("node2/kern.log", UPTIME)
    assert len(site.turn()) == 1


def seen_for_hours(*, every_s: int) -> list[NodeFaultSeen]:
    """What is told of a node that says for two hours that its GPU is gone."""
    own = lines()
    told: list[NodeFaultSeen] = []
    for number in range(7_200 // every_s):
        at = datetime.fromtimestamp(XID_MS // 1000 + number * every_s, UTC)
        line = XID.replace("10:00:05", f"{at:%H:%M:%S}").encode()
        where = Where("file:x", 0, number, number, int(at.timestamp() * 1000), "node2")
        told += own.faults(line, b"", where)
    return told


@pytest.mark.parametrize("every_s", [1, 30])
def test_a_fault_that_lasts_is_told_to_each_job_that_comes_while_it_does(every_s: int) -> None:
    came_ms = XID_MS + 3_000_000
    came = NodeAllocated("", "", attempt(0), "node2", came_ms, came_ms)
    facts: list[tuple[int, NodeFact]] = [(one.fault.at_ms, one) for one in seen_for_hours(every_s=every_s)]
    state, found = None, []
    for at_ms, fact in sorted([(came_ms, came), *facts], key=lambda one: one[0]):
        state, events = decide_node(state, fact, at_ms)
        found += [one for one in events if isinstance(one, NodeFaultTold)]
    assert found
    assert found[0].decided_ms <= came_ms + RENEWED_MS // MOST_OF_ORIGIN


@pytest.mark.parametrize("every_s", [1, 30, 100])
def test_a_fault_that_lasts_is_told_by_few_facts(every_s: int) -> None:
    times = [fact.fault.at_ms for fact in seen_for_hours(every_s=every_s)]
    for start_ms in range(XID_MS, XID_MS + 7_200_000, 60_000):
        window = [at for at in times if start_ms <= at < start_ms + RENEWED_MS]
        assert len(window) <= (2 if start_ms == XID_MS else 1) * MOST_OF_ORIGIN + 1


def test_a_clock_that_steps_back_a_little_lets_no_flood_through() -> None:
    throttle = Throttle()
    kept = [throttle.keeps_fault("node2", "xid", None, None, XID_MS - number, XID_MS) for number in range(1_000)]
    assert 0 < kept.count(True) <= MOST_OF_ORIGIN
    assert throttle.keeps_fault("node2", "xid", None, None, XID_MS - 3_600_000, XID_MS), (
        "another log is counted by itself"
    )


def test_secrets_are_masked_and_a_fault_without_a_host_is_counted() -> None:
    own = lines()
    text = f"{XID.strip()} token=hf_abcdefghijklmnopqrstuvwx\n".encode()
    [fact] = own.faults(text, b"", Where("file:x", 0, 0, 0, XID_MS, None))
    assert "hf_abc" not in fact.fault.evidence.text
    assert list(own.faults(b"NVRM: Xid (PCI:0000:06:00): 79, x\n", b"", Where("file:x", 0, 0, 0, XID_MS, None))) == []
    assert own.unplaced == 1


@pytest.mark.parametrize(
    ("line", "host"),
    [
        (b"Aug  1 10:00:05 node2 kernel: x", "node2"),
        (b"<4>Aug 11 10:00:05 node2.hpc.example.org kernel: x", "node2.hpc.example.org"),
        (b"2026-08-01T10:00:05.123456+02:00 gpu-17 kernel: x", "gpu-17"),
        (b"<6>1 2026-08-01T10:00:05Z gpu-17 kernel - - - x", "gpu-17"),
        (b"Aug  1 10:00:05 10.2.3.4 kernel: x", "10.2.3.4"),
        (b"[   81.2] NVRM: Xid", None),
        (b"", None),
    ],
)
def test_the_host_of_a_syslog_line(line: bytes, host: str | None) -> None:
    assert host_of(line) == host


def test_the_node_of_a_path_and_of_a_label() -> None:
    assert node_in("/var/log/{node}/kern.log", "/var/log/node2/kern.log") == "node2"
    assert node_in("/logs/{node}/{node}.*.log", "/logs/a/a.kern.log") == "a"
    assert node_in("/logs/{node}/{node}.*.log", "/logs/a/b.kern.log") == ""
    assert node_in("/var/log/all.log", "/var/log/all.log") is None
    assert [node_name(text) for text in ("node2:9400", "node2.lan:9400", "10.0.0.2:9100", "")] == [
        "node2",
        "node2",
        "10.0.0.2",
        "",
    ]
