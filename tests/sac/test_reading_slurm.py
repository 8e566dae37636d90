"""What Slurm prints is read rightly, in every known form; what is not understood is unknown, never a guess."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sac.slurm import nodes, sacct, squeue
from sac.slurm.answers import Known, Unknown
from sac.slurm.commands import SlurmCommands, environment
from sac.slurm.paths import NO_VAL, OutputOf
from sac.slurm.squeue import Look
from schemas.vocabulary import AttemptState, Outcome

CAPTURED = (Path(__file__).parent / "data" / "squeue-22.05.json").read_text()


def look(text: str = CAPTURED) -> Look:
    answer = squeue.parse(text, "local", {"node1": "host1"})
    assert isinstance(answer, Known), answer
    return answer.value


def test_ids_are_those_that_commands_take_and_a_folded_array_is_no_job() -> None:
    seen = look()
    assert sorted(seen.jobs) == ["1", "10+0", "10+1", "12_0", "2_0", "3", "4", "5"]
    assert [seen.jobs[job].raw_job_id for job in ("2_0", "12_0", "10+1")] == [7, 14, 11]
    assert seen.folded == {12}
    assert seen.shows("12_3")  # still folded
    assert not seen.shows("12")
    assert not seen.shows("2_3")


def test_a_captured_job_is_read_whole() -> None:
    seen = look().jobs
    held = seen["1"]
    assert (held.state, held.reason, held.description) == (
        AttemptState.PENDING,
        "JobHeldUser",
        "job requeued in held state",
    )
    assert (held.restart_count, held.priority, held.nodes) == (1, 0, ())
    assert json.loads(held.comment)["APS"]["workflow_id"] == "w1"
    assert seen["3"].excluded_nodes == ("node1",)
    assert (seen["4"].state, seen["4"].exit_code, seen["4"].requeue) == (AttemptState.FAILED, 3 << 8, True)
    assert not seen["5"].requeue
    assert (seen["10+1"].het_leader, seen["10+1"].het_offset) == (10, 1)


def test_output_paths_are_expanded_as_slurmd_did() -> None:
    seen = look().jobs
    assert seen["1"].log_paths == ("/home/user/jobs/slurm-1.out",)
    assert seen["2_0"].log_paths == ("/home/user/jobs/out/j.sh-7.log", "/home/user/jobs/user-2_0.err")
    assert seen["4"].log_paths == ("/home/user/jobs/4-host1-0-batch-0-%b.out",)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        # As the files were named on a real 22.05 cluster.
        (
            "/l/P-%x-%a-%A-%b-%J-%%j-%4j-%N-%n-%s-%t-%u-%4A-%4t-%z.o",
            f"/l/P-bc-{NO_VAL}-40-%b-40-%j-0040-host-0-batch-0-user-0040-0000-%z.o",
        ),
        ("Q\\-%j.o", "/home/Q-%j.o"),
        ("", "/home/slurm-40.out"),
        ("deep/%j/out", "/home/deep/40/out"),
    ],
)
def test_patterns_of_a_plain_job(pattern: str, path: str) -> None:
    assert OutputOf(40, None, None, "bc", "user", "host.example", "/home").path(pattern) == path


def test_patterns_of_an_array_task() -> None:
    output = OutputOf(26, 24, 1, "n", "user", "host", "/home")
    assert output.path("%A-%a-%b-%j-%4a-%5j-%J-%t.o") == "/home/24-1-%b-26-0001-00026-26-0.o"
    assert output.path("") == "/home/slurm-24_1.out"


def later_shape(entry: dict[str, Any]) -> dict[str, Any]:
    """The same job as data_parser v0.0.41 of Slurm 24.05 writes it."""

    def wrapped(value: int | None) -> dict[str, Any]:
        return {"set": value is not None, "infinite": False, "number": value or 0}

    later = dict(entry)
    for name in ("array_job_id", "array_task_id", "het_job_id", "het_job_offset", "priority", "submit_time"):
        later[name] = wrapped(entry[name])
    for name in ("start_time", "end_time"):
        later[name] = wrapped(entry[name] or None)
    status = entry["exit_code"]
    later["exit_code"] = {
        "status": ["ERROR"],
        "return_code": wrapped(status >> 8),
        "signal": {"id": wrapped(status & 0x7F), "name": ""},
    }
    later["job_state"] = [entry["job_state"]]
    later["nodes"] = {"count": 1, "list": entry["nodes"], "allocation": []}
    return later


def test_later_versions_read_the_same() -> None:
    document = json.loads(CAPTURED)
    for entry in document["jobs"]:
        entry["exit_code"] &= 0xFF7F  # later versions have no core-dump bit
    before = look(json.dumps(document))
    document["jobs"] = [later_shape(entry) for entry in document["jobs"]]
    assert look(json.dumps(document)) == before


def test_states_with_flags_are_told_by_the_flag_that_matters() -> None:
    assert squeue.state_of(("RUNNING", "COMPLETING")) is AttemptState.COMPLETING
    assert squeue.state_of(("RUNNING", "CONFIGURING")) is AttemptState.CONFIGURING
    assert squeue.state_of(("PENDING", "REQUEUED")) is AttemptState.PENDING
    assert squeue.state_of(("CANCELLED by 1000",)) is AttemptState.CANCELLED
    assert squeue.state_of(("CANCELLED+",)) is AttemptState.CANCELLED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "JOBID PARTITION",
        "[]",
        "{}",
        '{"jobs": 3}',
        '{"jobs": [3], "errors": []}',
        '{"jobs": [{"name": "x"}]}',
        '{"jobs": [], "errors": ["slurm_load_jobs error"]}',
        "[" * 100_000,
    ],
)
def test_what_is_no_list_of_jobs_is_unknown(text: str) -> None:
    assert isinstance(squeue.parse(text, "local"), Unknown)


def test_another_clusters_jobs_are_unknown_and_the_setting_is_named() -> None:
    answer = squeue.parse(CAPTURED, "other")
    assert isinstance(answer, Unknown)
    assert "slurm.cluster" in answer.reason


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from(sorted(json.loads(CAPTURED)["jobs"][0])), JUNK)
def test_a_field_of_unknown_shape_never_crashes_and_never_makes_other_jobs_vanish(name: str, junk: Any) -> None:
    document = json.loads(CAPTURED)
    document["jobs"][0][name] = junk
    answer = squeue.parse(json.dumps(document), "local")
    if isinstance(answer, Known):
        others = set(look().jobs) - {"1"}
        assert others <= {*answer.value.jobs, *answer.value.unreadable}


def test_an_unreadable_job_is_still_there() -> None:
    document = json.loads(CAPTURED)
    document["jobs"][0]["job_state"] = "DANCING"
    seen = look(json.dumps(document))
    assert "1" not in seen.jobs
    assert "DANCING" in seen.unreadable["1"]
    assert seen.shows("1")


SACCT = """\
1|1|1795976037|1795976037|1795976041|REQUEUED|0:0|node[1-2]|user|main|my|job
1|1|1795976041|Unknown|Unknown|PENDING|0:0|None assigned|user|main|my|job
2_0|7|1795976037|1795976037|1795976037|FAILED|0:53|node1|user|main|j.sh
2_[2-3%2]|2|1795976037|Unknown|Unknown|PENDING|0:0|None assigned|user|main|j.sh
4|4|1000000000|1000000001|1000000002|COMPLETED|0:0|node9|else|main|old
4|4|1795976037|1795976037|1795976038|FAILED|3:0|node1|user|main|j.sh
10+0|10|1795976055|1795976055|1795976115|CANCELLED by 0|0:15|node2|user|main|j.sh
"""


def test_accounting_gives_each_attempt_its_own_record() -> None:
    answer = sacct.parse(SACCT)
    assert isinstance(answer, Known)
    known = answer.value
    assert sorted(known) == ["1", "10+0", "2_0", "4"]
    failed = sacct.final_record(known["4"], 1795976037)
    assert failed is not None
    assert (failed.state, failed.exit_code, failed.user) == (AttemptState.FAILED, 3 << 8, "user")
    assert known["1"][0].name == "my|job"
    assert known["1"][0].nodes == ("node1", "node2")
    assert known["2_0"][0].exit_code == 53
    assert known["10+0"][0].state is AttemptState.CANCELLED


def test_an_old_use_of_the_id_or_a_record_that_is_not_final_says_nothing() -> None:
    answer = sacct.parse(SACCT)
    assert isinstance(answer, Known)
    assert sacct.final_record(answer.value["4"], 1795976099) is None
    assert sacct.final_record(answer.value["1"], 1795976041) is None
    assert isinstance(sacct.parse("Slurm accounting storage is disabled"), Unknown)
    assert isinstance(sacct.parse(SACCT.replace("FAILED", "DANCING")), Unknown)


@given(st.sets(st.from_regex(r"[a-z]{1,3}-?[0-9]{0,4}", fullmatch=True), max_size=30))
def test_compressed_host_lists_expand_to_the_same_names(names: set[str]) -> None:
    assert set(nodes.expand(nodes.compress(names))) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node[01-03,7]", ("node01", "node02", "node03", "node7")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("login,gpu[9-10]-ib", ("login", "gpu9-ib", "gpu10-ib")),
        ("(null)", ()),
        ("None assigned", ()),
        ("", ()),
    ],
)
def test_host_lists(text: str, names: tuple[str, ...]) -> None:
    assert nodes.expand(text) == names


@pytest.mark.parametrize("text", ["node[1-", "node[a-b]", "node[3-1]", "node]", "node[1-999999999]"])
def test_what_is_no_host_list_is_refused_by_name(text: str) -> None:
    with pytest.raises(nodes.InvalidHostList, match="node"):
        nodes.expand(text)


def test_compressed_lists_are_short() -> None:
    assert nodes.compress(["node10", "node9", "node11", "n01", "n02", "login"]) == "login,n[01-02],node9,node[10-11]"


def test_nothing_of_a_users_environment_reaches_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SQUEUE_FORMAT", "SACCT_FORMAT", "SLURM_TIME_FORMAT", "SCANCEL_STATE", "SLURM_CLUSTERS", "TZ"):
        monkeypatch.setenv(name, "surprise")
    clean = environment(Path("/etc/slurm/slurm.conf"))
    assert "surprise" not in clean.values()
    assert clean["SLURM_CONF"] == "/etc/slurm/slurm.conf"


def commands(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> SlurmCommands:
    """A `scontrol` of our own."""
    (folder / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return SlurmCommands(None, 0.5)


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("exit 0", Outcome.ACCEPTED),
        ("echo 'Invalid job id specified' >&2; exit 1", Outcome.REFUSED),
        ("echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1", Outcome.REFUSED),
        ("echo 'Socket timed out on send/recv operation' >&2; exit 1", Outcome.UNKNOWN),
        ("echo 'Zero Bytes were transmitted or received' >&2; exit 1", Outcome.UNKNOWN),
        ("exec sleep 5", Outcome.UNKNOWN),
    ],
)
def test_only_a_clear_answer_is_an_outcome(
    script: str, outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commands(tmp_path, script, monkeypatch).send("scontrol", "release", "1").outcome is outcome


@pytest.mark.parametrize("script", ["exit 0", "exit 3", "exec sleep 5"])
def test_no_output_no_success_and_no_answer_are_all_unknown(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(commands(tmp_path, script, monkeypatch).read("scontrol", "ping"), Unknown)


def test_a_command_that_is_not_there_is_unknown_to_read_and_refused_to_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = commands(tmp_path, "exit 0", monkeypatch)
    assert isinstance(running.read("no-such-command"), Unknown)
    assert running.send("no-such-command").outcome is Outcome.REFUSED
