"""The Spark clusters that jobs and notebooks may use, and their registration by administrators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from yardmaster_client.models import read
from yardmaster_client.transport import Transport


@dataclass(frozen=True)
class SparkCluster:
    """A registered Spark cluster. Limits are None where there is none; `most_memory` is in bytes. `state` is checking,
    reachable or unreachable, with the `problem` in words. `namespaces`: of those that you see, where it is not for
    everyone."""

    id: str
    name: str
    master: str = ""
    driver_address: str = ""
    python: str = ""
    has_secret: bool = False
    most_executors: int | None = None
    most_cores: int | None = None
    most_memory: int | None = None
    most_cores_at_once: int | None = None
    everyone: bool = True
    namespaces: tuple[str, ...] = ()
    enabled: bool = True
    state: str = ""
    problem: str = ""
    checked_at: datetime | None = None
    created_at: datetime | None = None
    changed_at: datetime | None = None


class SparkClusters:
    """Registered Spark clusters."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, namespace: str | None = None) -> Iterator[SparkCluster]:
        """Those that your namespaces may use, or that this one may use, the newest first."""
        return (read(SparkCluster, row) for row in self._transport.pages("spark-clusters/", namespace=namespace))

    def get(self, name: str) -> SparkCluster:
        return read(SparkCluster, self._transport.get(f"spark-clusters/{name}/"))

    def create(self, name: str, master: str, driver_address: str, **facts: Any) -> SparkCluster:
        """Register a cluster (administrators). `facts`: python, secret, most_executors, most_cores, most_memory,
        most_cores_at_once, everyone, namespaces, enabled."""
        body = {"name": name, "master": master, "driver_address": driver_address, **facts}
        return read(SparkCluster, self._transport.post("spark-clusters/", body))

    def change(self, name: str, **facts: Any) -> SparkCluster:
        """Change what is said of it (administrators). Tasks that start later are told the new values."""
        return read(SparkCluster, self._transport.patch(f"spark-clusters/{name}/", facts))

    def check(self, name: str) -> SparkCluster:
        """Have the portal look whether its master answers (administrators): `state` is checking until it has."""
        return read(SparkCluster, self._transport.post(f"spark-clusters/{name}/check/"))

    def delete(self, name: str) -> None:
        """Remove it (administrators). Refused while jobs or sessions use it."""
        self._transport.delete(f"spark-clusters/{name}/")
