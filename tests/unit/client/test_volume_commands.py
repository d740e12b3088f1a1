"""`yardmaster volumes`, and `datasets publish` and `unpublish`: what is asked of the portal, and what is said."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from yardmaster_client.cli import volumes
from yardmaster_client.cli.main import run
from yardmaster_client.portal import Yardmaster

VOLUME = {
    "id": "v1", "kind": "data", "engine": "kubernetes", "size": 1 << 30, "published": 5, "state": "pending",
    "message": "ProvisioningFailed: full", "remedy": "",
}  # fmt: skip
COPY = {"dataset": "reviews", "number": 3, "engine": "kubernetes", "state": "copying", "job": "j1"}


class Portal:
    """Answers as a portal would, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.datasets = None
        self.phase = "SUCCEEDED"
        self.jobs = SimpleNamespace(wait=lambda job: SimpleNamespace(phase=self.phase))

    def __enter__(self) -> Portal:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def namespaces(self) -> list[Any]:
        return [SimpleNamespace(id="n1", personal=True, role="manager")]

    def volumes(self, namespace: str) -> list[dict[str, Any]]:
        return [VOLUME, VOLUME | {"id": "v2", "kind": "log"}]

    def volume_versions(self, namespace: str, volume: str) -> list[dict[str, Any]]:
        return [COPY | {"version": "d1", "bytes": 5, "state": "ready"}]

    def volume_clean(self, namespace: str, volume: str) -> str:
        self.asked.append(("volume_clean", namespace, volume))
        return "j2"

    def version_on_volumes(self, version: str) -> list[dict[str, Any]]:
        return [COPY | {"state": "ready"}]

    def __getattr__(self, verb: str) -> Any:
        def ask(*words: Any, **more: Any) -> dict[str, Any]:
            self.asked.append((verb, *words, *more.values()))
            return COPY if "version" in verb else VOLUME

        return ask


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Portal:
    made = Portal()
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: made)
    monkeypatch.setattr(volumes, "find_version", lambda *_: SimpleNamespace(id="d1"))
    monkeypatch.setattr(volumes, "verdict_of", lambda job: job.phase)
    return made


def test_a_volume_is_listed_with_why_it_is_not_ready(portal: Portal, capsys: pytest.CaptureFixture[str]):
    assert run(["volumes", "list"]) == 0
    assert "ProvisioningFailed: full" in capsys.readouterr().out
    assert run(["volumes", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == portal.volumes("n1")


def test_volumes_are_created_enlarged_and_deleted(portal: Portal):
    assert run(["volumes", "create", "data", "--size", "1Gi"]) == 0
    assert run(["volumes", "resize", "data", "--size", "2Gi"]) == 0
    assert run(["volumes", "delete", "data", "--yes"]) == 0
    assert portal.asked == [
        ("volume_create", "n1", "data", "1Gi"), ("volume_resize", "n1", "v1", "2Gi"), ("volume_delete", "n1", "v1"),
    ]  # fmt: skip
    assert run(["volumes", "delete", "log", "--engine", "other", "--yes"]) == 1


def test_a_volume_without_a_size_has_that_which_the_portal_gives_it(portal: Portal, capsys: pytest.CaptureFixture[str]):
    assert run(["volumes", "create", "data"]) == 0
    assert "The data volume of 1.0 GiB on kubernetes is being created." in capsys.readouterr().err
    assert run(["volumes", "create", "data", "--size", ""]) == 0  # refused by the portal: no word for all of the quota
    assert portal.asked == [("volume_create", "n1", "data"), ("volume_create", "n1", "data", "")]


def test_what_is_on_volumes_is_listed_and_removed(portal: Portal, capsys: pytest.CaptureFixture[str]):
    assert run(["volumes", "versions"]) == 0
    assert "reviews@3" in capsys.readouterr().out
    assert run(["volumes", "versions", "--json"]) == 0
    assert [one["version"] for one in json.loads(capsys.readouterr().out)] == ["d1"]
    assert run(["volumes", "remove", "d1", "--wait"]) == 0
    assert run(["volumes", "clean"]) == 0
    assert portal.asked == [("volume_version_remove", "n1", "v1", "d1"), ("volume_clean", "n1", "v2")]
    portal.phase = "FAILED"
    assert run(["volumes", "remove", "d1", "--wait"]) == 1
    assert run(["volumes", "clean", "--wait"]) == 1


def test_publishing_waits_for_its_job_and_fails_with_it(portal: Portal, capsys: pytest.CaptureFixture[str]):
    assert run(["datasets", "publish", "reviews@3", "--wait", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "ready"
    portal.phase = "FAILED"
    assert run(["datasets", "publish", "reviews@3", "--wait"]) == 1
    assert run(["datasets", "unpublish", "reviews@3"]) == 0
    assert portal.asked[-1] == ("version_unpublish", "d1", None)
