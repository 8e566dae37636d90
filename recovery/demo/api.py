"""The Gateway as the demo, or anyone, asks it."""

from __future__ import annotations

from typing import Any

import httpx

TIMEOUT_S = 5.0
Json = dict[str, Any]


class Api:
    """Reads of the HTTP API. An attempt that is not there yet reads as empty."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = httpx.Client(base_url=address, timeout=TIMEOUT_S)

    def attempts(self, job_id: str) -> list[Json]:
        """All attempts of a scheduler job, oldest first."""
        jobs: list[Json] = self._get(f"/v1/jobs/by-scheduler-id/{job_id}").get("jobs", [])
        return sorted(jobs, key=lambda job: (job["submitTime"] or "", job["attemptIndex"]))

    def timeline(self, heimdall_job_id: str) -> Json:
        """What happened to one attempt until its successor ran."""
        return self._get(f"/v1/jobs/{heimdall_job_id}/timeline", useHeimdallId="true")

    def why(self, heimdall_job_id: str) -> Json:
        """The same in plain sentences."""
        return self._get(f"/v1/jobs/{heimdall_job_id}/why", useHeimdallId="true")

    def advice(self, job_id: str) -> list[Json]:
        """All Advice of a scheduler job: the listing has no filter, so its pages are read through."""
        found: list[Json] = []
        page = ""
        while True:
            answer = self._get("/v1/advice", **({"page": page} if page else {}))
            found += [advice for advice in answer.get("advice", []) if advice["jobId"] == job_id]
            page = answer.get("nextPageToken", "")
            if not page:
                return found

    def audit(self, job_id: str, event_type: str) -> list[Json]:
        """Audit events of one type, oldest first."""
        answer = self._get("/v1/audit/events", jobId=job_id, eventType=event_type, sortBy="event_produced_at:asc")
        items: list[Json] = answer.get("items", [])
        return items

    def close(self) -> None:
        self._client.close()

    def _get(self, path: str, **query: str) -> Json:
        answer = self._client.get(path, params=query)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return {}
        answer.raise_for_status()
        document: Json = answer.json()
        return document
