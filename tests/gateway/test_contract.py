"""The contract of `/v1`: names, shapes, paging and errors, over a real PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, select

from gateway.app import create_app
from gateway.jobs import job_status
from gateway.models import Disposition, JobStatus, Reason
from gateway.tables import READ
from schemas.vocabulary import AttemptState, Resolution
from schemas.vocabulary import Disposition as Standing
from tests.gateway.api import Api
from tests.histories import XID_LINE

pytestmark = pytest.mark.stack


def names(jobs: list[dict[str, Any]]) -> list[str]:
    return [f"{job['jobId']}-{job['attemptIndex']}" for job in jobs]


def test_every_column_that_is_read_exists(engine: Engine) -> None:
    with engine.connect() as connection:
        for table in READ:
            connection.execute(select(table).limit(1))


def test_the_gateway_can_not_write(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises(Exception, match="read-only"):
        connection.exec_driver_sql("DELETE FROM attempt_rows")


def test_a_job_is_one_attempt_with_both_its_identities(api: Api) -> None:
    job = api.get("/v1/jobs/42-1")["job"]
    assert (job["jobId"], job["attemptIndex"], job["jmState"]) == ("42", 1, "COMPLETED")
    assert job["state"] == "JOB_STATUS_STOPPED"
    assert job["nodeConstraints"] == {"excludedNodes": ["node2"]}
    assert job["loadedCheckpointStep"] == 30
    assert job["endTime"].endswith("Z")
    assert api.get(f"/v1/jobs/{job['heimdallJobId']}", useHeimdallId="true")["job"] == job


def test_all_attempts_of_a_scheduler_job_the_oldest_first(api: Api) -> None:
    answer = api.get("/v1/jobs/by-scheduler-id/123_4")
    assert names(answer["jobs"]) == ["123_4-0", "123_4-1"]
    assert (answer["count"], answer["nextPageToken"]) == (2, "")
    second = api.get("/v1/jobs/by-scheduler-id/123_4", limit=1, page="1")
    assert names(second["jobs"]) == ["123_4-1"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"workflowIds": ["array", "watched-run"]}, ["123_4-0", "43-0", "123_4-1"]),
        ({"jobIds": ["43"]}, ["43-0"]),
        ({"jmState": "COMPLETED"}, ["42-1", "123_4-1"]),
        ({"reconciliationEligibleJobs": "true", "jobIds": ["42", "43"]}, ["42-0", "43-0"]),
        ({"jobIds": ["777"]}, []),
    ],
)
def test_jobs_are_filtered(api: Api, query: dict[str, Any], expected: list[str]) -> None:
    assert sorted(names(api.get("/v1/jobs", **query)["jobs"])) == sorted(expected)


def test_pages_of_jobs_follow_on_by_token_and_by_number(api: Api) -> None:
    every = names(api.get("/v1/jobs")["jobs"])
    assert len(every) == 5
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = api.get("/v1/jobs", **query)
        seen += names(page["jobs"])
        if not page["nextPageToken"]:
            break
        query["pageToken"] = page["nextPageToken"]
    assert seen == every
    assert names(api.get("/v1/jobs", limit=2, pageNumber=2)["jobs"]) == every[2:4]


def test_workflows_end_when_their_last_attempt_has(api: Api) -> None:
    workflow = api.get("/v1/workflows:lookup", workflowId="training-run")["workflow"]
    assert workflow["name"] == "Nightly training"
    assert workflow["startTime"] == "2026-02-02T02:40:02.000Z"
    assert workflow["endTime"] is not None
    listed = api.get("/v1/workflows")
    assert workflow in listed["workflows"]
    assert listed["count"] == 3


def test_advice_carries_what_should_happen_why_and_whether_it_did(api: Api) -> None:
    by_job = {advice["jobId"]: advice for advice in api.get("/v1/advice")["advice"]}
    advice = by_job["42"]
    assert (advice["attemptIndex"], advice["desiredState"], advice["generation"]) == (0, "RESTARTED", "1")
    assert advice["nodeConstraints"] == {"excludedNodes": ["node2"]}
    assert advice["reconciliationStatus"] == {
        "observedGeneration": "1",
        "disposition": "ADVICE_RECONCILIATION_DISPOSITION_CONVERGED",
        "reason": "ADVICE_RECONCILIATION_REASON_DESIRED_STATE_OBSERVED",
        "detail": "attempt 1 is PENDING and not held",
    }
    [issue] = advice["detectedIssues"]
    assert (issue["faultClass"], issue["nodes"], issue["signature"]) == ("gpu_hardware", ["node2"], "gpu.xid.79")
    assert by_job["43"]["reconciliationStatus"]["disposition"].endswith("ABANDONED")
    assert api.get("/v1/advice", onlyActive="true")["advice"] == []


def test_pages_of_advice_follow_on_by_opaque_tokens(api: Api) -> None:
    every = [advice["heimdallJobId"] for advice in api.get("/v1/advice")["advice"]]
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 1}
    while True:
        page = api.get("/v1/advice", **query)
        seen += [advice["heimdallJobId"] for advice in page["advice"]]
        if not page["nextPageToken"]:
            break
        query["page"] = page["nextPageToken"]
    assert seen == every
    assert len(every) == 3
    assert "keep the filters" in api.refused("/v1/advice", page=query["page"], onlyActive="true")


def test_audit_pages_lead_both_ways_through_the_same_events(api: Api) -> None:
    every = api.get("/v1/audit/events", jobId="42")["items"]
    seen: list[Any] = []
    cursors: list[Any] = []
    query: dict[str, Any] = {"jobId": "42", "limit": 7}
    while True:
        page = api.get("/v1/audit/events", **query)
        seen += page["items"]
        cursors.append(page["cursor"])
        if page["cursor"]["next"] is None:
            break
        query["cursor"] = page["cursor"]["next"]
    assert seen == every
    assert cursors[0]["previous"] is None
    back = api.get("/v1/audit/events", jobId="42", limit=7, cursor=cursors[1]["previous"])
    assert back["items"] == every[:7]
    assert back["cursor"]["previous"] is None
    last_but_one = api.get("/v1/audit/events", jobId="42", limit=7, cursor=cursors[-1]["previous"])
    start = 7 * (len(cursors) - 2)
    assert last_but_one["items"] == every[start : start + 7]
    turned = api.get("/v1/audit/events", jobId="42", sortBy="event_produced_at:desc")["items"]
    assert turned == every[::-1]


def test_audit_events_of_an_attempt_include_the_schedulers_looks_at_it(api: Api) -> None:
    identity = api.get("/v1/jobs/42-1")["job"]["heimdallJobId"]
    items = api.get("/v1/audit/events", heimdallJobId=identity)["items"]
    assert {item["heimdallJobId"] for item in items} == {identity}
    assert {"JobObserved", "AttemptOpened", "CheckpointLoaded"} <= {item["eventType"] for item in items}
    by_index = api.get("/v1/audit/events", jobId="42", attemptIndex=1)["items"]
    assert by_index == items


def test_audit_filters_are_exact_and_times_inclusive_microseconds(api: Api) -> None:
    [anomaly] = api.get("/v1/audit/events", jobId="42", eventType="AnomalyDetected")["items"]
    assert anomaly["payload"]["evidence"]["text"] == XID_LINE
    at = anomaly["eventProducedAt"]
    assert isinstance(at, str)
    window = {"jobId": "42", "minEventProducedAt": at, "maxEventProducedAt": at}
    types = [item["eventType"] for item in api.get("/v1/audit/events", **window)["items"]]
    assert types == ["SignatureMatched", "AnomalyDetected"]
    assert api.get("/v1/audit/events", eventProducer="nobody")["items"] == []
    warnings = api.get("/v1/audit/events", eventLevel="WARNING", eventProducer="sac")["items"]
    assert {item["eventType"] for item in warnings} == {"ActionRefused"}


def test_a_timeline_ends_with_the_successor_resuming(api: Api) -> None:
    timeline = api.get("/v1/jobs/42-0/timeline")
    kinds = [(entry["attemptIndex"], entry["kind"]) for entry in timeline["entries"]]
    assert kinds[0] == (0, "opened")
    assert (0, "resolution") in kinds
    assert kinds[-1] == (1, "checkpoint_loaded")
    times = [entry["time"] for entry in timeline["entries"]]
    assert times == sorted(times)
    assert timeline["milestones"][0] == {
        "name": "lineWritten",
        "time": "2026-02-02T02:40:05.450Z",
        "msSinceFault": 0,
        "msSincePrevious": 0,
    }
    lines = [line["text"] for entry in timeline["entries"] for line in entry["evidence"]]
    assert XID_LINE in lines


def test_the_why_of_an_attempt_shows_its_evidence_lines(api: Api) -> None:
    why = api.get("/v1/jobs/42-0/why")
    assert (why["converged"], why["runningAgain"]) == (True, True)
    cause = next(sentence for sentence in why["sentences"] if sentence["about"] == "cause")
    assert cause["evidence"][0]["text"] == XID_LINE
    assert api.get("/v1/jobs/43-0/why")["runningAgain"] is False


@pytest.mark.parametrize(
    ("path", "query", "words"),
    [
        ("/v1/jobs", {"limit": 251}, ["limit is '251'", "less than or equal to 250"]),
        ("/v1/jobs", {"limit": "many"}, ["limit is 'many'", "integer"]),
        ("/v1/jobs", {"pageToken": "x"}, ["pageToken is 'x'", "nextPageToken"]),
        ("/v1/jobs", {"pageToken": "1", "pageNumber": 1}, ["pageNumber is 1", "one of the two"]),
        ("/v1/jobs", {"pageNumber": 0}, ["pageNumber is '0'", "greater than or equal to 1"]),
        ("/v1/jobs", {"jmState": "running"}, ["jmState is 'running'", "RUNNING"]),
        ("/v1/jobs", {"jobIds": "200 1"}, ["jobIds is '200 1'", "%2B"]),
        ("/v1/jobs", {"jobID": "42"}, ["jobID", "no such query parameter", "jobIds", "workflowIds"]),
        ("/v1/jobs/42", {}, ["heimdallJobId is '42'", "42-0"]),
        ("/v1/jobs/42-0", {"useHeimdallId": "true"}, ["no UUID", "{jobId}-{attemptIndex}"]),
        ("/v1/jobs/by-scheduler-id/x", {}, ["schedulerJobId is 'x'", "123_4"]),
        ("/v1/workflows:lookup", {}, ["workflowId", "required"]),
        ("/v1/advice", {"page": "2"}, ["page is '2'", "the page before"]),
        ("/v1/audit/events", {"limit": 101}, ["limit is '101'", "100"]),
        ("/v1/audit/events", {"attemptIndex": 0}, ["attemptIndex is 0", "needs jobId"]),
        ("/v1/audit/events", {"heimdallJobId": "a", "jobId": "1"}, ["jobId is '1'", "heimdallJobId"]),
        ("/v1/audit/events", {"sortBy": "time"}, ["sortBy is 'time'", "event_produced_at"]),
        ("/v1/audit/events", {"minEventProducedAt": "-1"}, ["minEventProducedAt is '-1'"]),
    ],
)
def test_what_can_not_be_taken_is_named_with_the_way_out(
    api: Api, path: str, query: dict[str, Any], words: list[str]
) -> None:
    message = api.refused(path, **query)
    assert [word for word in words if word not in message] == []


def test_what_is_not_known_is_not_found_in_the_same_form(api: Api) -> None:
    for path in ("/v1/jobs/42-7", "/v1/jobs/42-7/why", "/v1/nothing", "/v1/workflows:lookup?workflowId=none"):
        answer = api.ask(path)
        assert answer.status_code == 404
        assert answer.json()["code"] == 5


def test_an_absent_database_is_unavailable_and_worth_trying_again() -> None:
    absent = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none", connect_args={"connect_timeout": 2})
    api = Api(create_app(absent))
    answer = api.ask("/v1/jobs")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert api.ask("/readyz").status_code == 503
    assert api.ask("/healthz").status_code == 200


def test_readiness_says_how_far_the_projection_is(api: Api) -> None:
    answer = api.get("/readyz")
    assert answer["ready"] is True
    assert [partition["topic"] for partition in answer["partitions"]] == ["recovery.decisions", "recovery.journal"]
    assert answer["staleSeconds"] is None  # no runner has looked: these rows came from the test itself


def test_every_operation_is_described_with_its_answer_and_its_errors(api: Api) -> None:
    document = api.get("/openapi.json")
    paths = {path for path in document["paths"] if path.startswith("/v1")}
    assert paths == {
        "/v1/jobs",
        "/v1/jobs/by-scheduler-id/{schedulerJobId}",
        "/v1/jobs/{heimdallJobId}",
        "/v1/jobs/{heimdallJobId}/timeline",
        "/v1/jobs/{heimdallJobId}/why",
        "/v1/workflows",
        "/v1/workflows:lookup",
        "/v1/advice",
        "/v1/audit/events",
    }
    for path in paths:
        responses = document["paths"][path]["get"]["responses"]
        assert set(responses) == {"200", "400", "404", "503", "default"}
    query = {parameter["name"] for parameter in document["paths"]["/v1/jobs"]["get"]["parameters"]}
    assert query == {
        "pageToken",
        "pageNumber",
        "limit",
        "workflowIds",
        "jobIds",
        "jmState",
        "reconciliationEligibleJobs",
    }


def test_the_words_of_the_interface_follow_the_vocabulary() -> None:
    assert {reason.removeprefix("ADVICE_RECONCILIATION_REASON_") for reason in Reason} == set(Resolution)
    standings = {word.removeprefix("ADVICE_RECONCILIATION_DISPOSITION_") for word in Disposition}
    assert standings == {*Standing, "UNSPECIFIED"}


@pytest.mark.parametrize("state", sorted(AttemptState))
def test_every_state_of_slurm_has_one_of_the_interface(state: str) -> None:
    assert (job_status(state) is JobStatus.UNSPECIFIED) == (state == "UNKNOWN")


def test_more_requests_than_connections_are_asked_to_come_again(url: str) -> None:
    narrow = create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.1)
    with narrow.connect():
        answer = Api(create_app(narrow)).ask("/v1/jobs")
    narrow.dispose()
    assert (answer.status_code, answer.json()["code"]) == (503, 14)
