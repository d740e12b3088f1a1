"""`yardmaster connections`: set with a check, list, show, delete."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from yardmaster_client.cli.main import run
from yardmaster_client.portal import Yardmaster

PROBLEM = {"code": "ignite_sign_in", "detail": "It does not let the portal in.", "remedy": "Check the password."}
FOUND = {
    "caches": [{
        "name": "IMAGES", "tables": ["PUBLIC.IMAGES"], "rows": 3, "partitions": 8, "problem": "",
        "columns": [{"name": "ID", "type": "Long"}], "preview": [["1"]],
    }],
    "count": 1, "notes": [],
}  # fmt: skip
CATS = {"name": "cats", "hosts": "one", "tls": True, "state": "ready", "problem": None, "found": FOUND}


class Portal:
    """Answers as a portal would, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answer = CATS

    def __enter__(self) -> Portal:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def namespaces(self) -> list[Any]:
        return [SimpleNamespace(id="n1", personal=True, role="manager")]

    def connections(self, namespace: str) -> list[dict[str, Any]]:
        return [self.answer]

    def connection(self, namespace: str, name: str) -> dict[str, Any]:
        return self.answer

    def connection_set(self, namespace: str, name: str, **facts: Any) -> dict[str, Any]:
        self.asked.append((namespace, name, facts))
        return self.answer

    def connection_check(self, namespace: str, name: str) -> dict[str, Any]:
        self.asked.append((namespace, name))
        return self.answer

    def connection_wait(self, namespace: str, name: str) -> dict[str, Any]:
        return self.answer

    def connection_delete(self, namespace: str, name: str, *, force: bool) -> None:
        self.asked.append((namespace, name, force))


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Portal:
    found = Portal()
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: found)
    return found


def test_a_connection_is_set_checked_and_its_caches_told(portal: Portal, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connections", "set", "cats", "--hosts", "one", "--tls", "--ca", "CA"]) == 0
    assert portal.asked[0][2] == {
        "hosts": "one", "tls": True, "ca": "CA", "certificate": "", "certificate_password": "", "username": "",
        "password": "",
    }  # fmt: skip
    told = capsys.readouterr().out
    for word in ("IMAGES", "PUBLIC.IMAGES", "8", "ID Long"):
        assert word in told


def test_a_check_of_a_connection_that_fails_is_an_error(portal: Portal, capsys: pytest.CaptureFixture[str]) -> None:
    portal.answer = CATS | {"state": "failed", "problem": PROBLEM, "found": None}
    assert run(["connections", "check", "cats"]) == 1
    assert "Check the password." in capsys.readouterr().err
    assert run(["connections", "list"]) == 0
    assert "It does not let the portal in." in capsys.readouterr().out


def test_a_connection_is_shown_and_deleted(portal: Portal, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connections", "show", "cats", "--json"]) == 0
    assert '"count": 1' in capsys.readouterr().out
    assert run(["connections", "delete", "cats", "--yes", "--force"]) == 0
    assert portal.asked == [("n1", "cats", True)]


class Copying(Portal):
    """Copies at once."""

    ended: dict[str, Any] = {"id": "c1", "state": "ready", "rows": 1234, "problem": None}

    def connection_copy(self, namespace: str, name: str, **wanted: Any) -> dict[str, Any]:
        self.asked.append((name, wanted))
        return {"id": "c1"}

    def connection_copy_wait(self, namespace: str, name: str, copy_id: str, each: Any) -> dict[str, Any]:
        each(self.ended)
        return self.ended

    def connection_copies(self, namespace: str, name: str) -> list[dict[str, Any]]:
        return [self.ended | {"cache": "IMAGES", "query": "", "dataset": "kittens"}]


def test_rows_are_copied_and_copies_listed(monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    portal = Copying()
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: portal)
    assert run(["connections", "copy", "cats", "--cache", "IMAGES", "--dataset", "kittens"]) == 0
    assert portal.asked == [("cats", {"dataset": "kittens", "cache": "IMAGES", "query": ""})]
    assert "1,234 rows" in capsys.readouterr().err
    assert run(["connections", "copies", "cats"]) == 0
    assert "kittens" in capsys.readouterr().out
    assert run(["connections", "copy", "cats", "--dataset", "kittens"]) == 2
    portal.ended = portal.ended | {"state": "failed", "problem": PROBLEM}
    assert run(["connections", "copy", "cats", "--query", "SELECT 1", "--dataset", "kittens"]) == 1
    assert "does not let the portal in" in capsys.readouterr().err
