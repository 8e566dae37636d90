"""Registers the committed schemas with a Confluent-compatible registry and learns their ids."""

from __future__ import annotations

import httpx

from schemas.catalogue import SchemaVersion, committed

COMPATIBILITY = "FULL_TRANSITIVE"
TIMEOUT_S = 10.0


class RegistryError(RuntimeError):
    """The registry is out of reach or refused a schema; the message says which and what to do."""


class RegistryIds:
    """The ids of all committed schemas, registered on construction (idempotent). Raises RegistryError."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._ids: dict[str, int] = {}
        self._fingerprints: dict[int, str] = {}
        with httpx.Client(timeout=TIMEOUT_S) as client:
            for history in committed().values():
                for version in history:
                    schema_id = self._register(client, version)
                    self._ids[version.fingerprint] = schema_id
                    self._fingerprints[schema_id] = version.fingerprint

    def id_of(self, version: SchemaVersion) -> int:
        return self._ids[version.fingerprint]

    def fingerprint_of(self, schema_id: int) -> str | None:
        return self._fingerprints.get(schema_id)

    def _register(self, client: httpx.Client, version: SchemaVersion) -> int:
        subject = f"recovery.{version.name}"
        try:
            answer = client.post(f"{self._url}/subjects/{subject}/versions", json={"schema": version.text})
        except httpx.HTTPError as error:
            raise RegistryError(f"the schema registry at {self._url} does not answer ({error}); is it up?") from error
        if answer.status_code != 200:
            raise RegistryError(
                f"the registry refused {subject} version {version.number}: {answer.status_code} {answer.text[:300]}"
            )
        return int(answer.json()["id"])


def require_compatibility(url: str) -> None:
    """Make the registry refuse any schema that an old or a new reader could not read. Raises RegistryError."""
    try:
        answer = httpx.put(f"{url.rstrip('/')}/config", json={"compatibility": COMPATIBILITY}, timeout=TIMEOUT_S)
    except httpx.HTTPError as error:
        raise RegistryError(f"the schema registry at {url} does not answer ({error}); is it up?") from error
    if answer.status_code != 200:
        raise RegistryError(f"the registry refused {COMPATIBILITY}: {answer.status_code} {answer.text[:300]}")
