"""From what people type to ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.unit.client.flaky_server import Asked, FlakyServer
from yardmaster_client.names import (
    NotFound,
    find_item,
    find_job,
    find_namespace,
    find_session,
    find_version,
    resolve_spec,
    session_id_of,
)
from yardmaster_client.portal import Yardmaster


def an_id(number: int) -> str:
    return f"0190000{number}-0000-7000-8000-000000000000"


def collection(number: int, name: str, namespace: str = "mine", newest: int = 2) -> dict[str, Any]:
    latest = {"id": an_id(number + 5), "number": newest}
    return {"id": an_id(number), "name": name, "namespace": namespace, "namespace_slug": namespace, "latest": latest}


JOBS = [
    {"id": an_id(9), "name": "digits", "phase": "RUNNING"},
    {"id": an_id(8), "name": "digits", "phase": "FAILED"},
    {"id": an_id(7), "name": "digits-2", "phase": "QUEUED"},
]
DATASETS = [collection(1, "digits"), collection(2, "shared", "theirs"), collection(3, "shared", "others")]
SESSIONS = [
    {"id": an_id(number), "kind": "tensorboard", "name": name, "state": state}
    for number, name, state in [
        (9, "digits", "stopped"), (8, "digits", "ready"), (7, "digits", "failed"), (6, "one", "stopped"),
        (5, "two", "ready"), (4, "two", "queued"), (3, "old", "stopped"), (2, "old", "stopped"),
    ]
]  # fmt: skip
VERSIONS = [{"id": an_id(6), "number": 2}, {"id": an_id(4), "number": 1}]


def answer(asked: Asked) -> tuple[int, Any]:
    parts = urlsplit(asked.path)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    path = parts.path.removeprefix("/api/v1/").strip("/").split("/")
    code = [collection(0, "train", newest=1)]
    rows = {"jobs": JOBS, "sessions": SESSIONS, "datasets": DATASETS, "code": code}.get(path[0], VERSIONS)
    if path[-1] == "versions":
        rows = VERSIONS
    elif len(path) == 2:
        found = next((row for row in rows if row["id"] == path[1]), None)
        return (200, found) if found else (404, {"code": "not_found", "detail": "None."})
    rows = [row for row in rows if query.get("search", "") in row.get("name", "")]
    rows = [row for row in rows if query.get("namespace") in (None, row.get("namespace"))]
    return 200, {"results": rows, "next": None}


@pytest.fixture
def portal(server: FlakyServer) -> Iterator[Yardmaster]:
    server.by_path = answer
    with Yardmaster(server.url, "token") as portal:
        yield portal


@pytest.mark.parametrize(
    ("reference", "number"),
    [("digits", 9), ("digits-2", 7), (an_id(8), 8), ("01900008", 8), (an_id(7)[:12], 7)],
)
def test_a_job_is_its_name_its_id_or_a_part_of_it(portal: Yardmaster, reference: str, number: int) -> None:
    assert find_job(portal, reference).id == an_id(number)


@pytest.mark.parametrize(("reference", "number"), [("digits", 8), ("one", 6), (an_id(9), 9), ("01900004", 4)])
def test_of_several_sessions_with_a_name_the_one_that_runs_is_meant(
    portal: Yardmaster, reference: str, number: int
) -> None:
    assert find_session(portal, reference).id == an_id(number)


@pytest.mark.parametrize(("reference", "named"), [("two", "45"), ("old", "23")])
def test_sessions_that_only_their_ids_tell_apart_are_listed(portal: Yardmaster, reference: str, named: str) -> None:
    with pytest.raises(NotFound, match=r"2 sessions are called .* Give the id") as refused:
        find_session(portal, reference)
    assert all(an_id(int(number)) in str(refused.value) for number in named)


def test_what_cannot_be_undone_needs_a_name_that_no_other_session_has(portal: Yardmaster) -> None:
    assert session_id_of(portal, "one") == an_id(6)
    with pytest.raises(NotFound, match="3 sessions are called 'digits'"):
        session_id_of(portal, "digits")


@pytest.mark.parametrize("reference", ["digit", "0190000", "01900001", "Digits", ""])
def test_what_is_unknown_or_not_unique_is_said_so(portal: Yardmaster, reference: str) -> None:
    with pytest.raises(NotFound):
        find_job(portal, reference)


@pytest.mark.parametrize(
    ("reference", "number"),
    [("digits", 6), ("digits@latest", 6), ("digits@1", 4), (an_id(1), 6), (an_id(4), 4), (f"{an_id(1)}@1", 4)],
)
def test_a_version_is_named_in_many_ways(portal: Yardmaster, reference: str, number: int) -> None:
    assert find_version(portal.datasets, reference).id == an_id(number)


def test_a_name_that_exists_twice_needs_its_namespace(portal: Yardmaster) -> None:
    with pytest.raises(NotFound, match="others, theirs"):
        find_item(portal.datasets, "shared")
    assert find_item(portal.datasets, "shared", "theirs").id == an_id(2)


@pytest.mark.parametrize("reference", ["digits@9", "nothing", "digits@x"])
def test_a_version_that_is_not_there_is_said_so(portal: Yardmaster, reference: str) -> None:
    with pytest.raises(NotFound):
        find_version(portal.datasets, reference)


@pytest.mark.parametrize(
    ("reference", "some"),
    [("digitz", "digits"), ("Digits", "digits"), ("mnist", "digits, shared"), ("dada", "digits, shared")],
)
def test_an_unknown_name_comes_with_those_that_there_are(portal: Yardmaster, reference: str, some: str) -> None:
    with pytest.raises(NotFound, match=f"There is no dataset .*'{reference}'") as refused:
        find_item(portal.datasets, reference)
    assert refused.value.remedy == f"Use one of: {some}. `yardmaster datasets list` shows all."


def test_a_few_names_are_named_at_most(server: FlakyServer, portal: Yardmaster) -> None:
    rows = [collection(1, f"set-{number}") for number in range(300)]
    server.by_path = lambda asked: (200, {"results": [] if "search=" in asked.path else rows, "next": None})
    with pytest.raises(NotFound) as refused:
        find_item(portal.datasets, "unlike")
    assert refused.value.remedy.count("set-") == 10
    assert "set-9." in refused.value.remedy
    rows.clear()
    with pytest.raises(NotFound) as refused:
        find_item(portal.datasets, "unlike")
    assert refused.value.remedy == "`yardmaster datasets list` shows those that there are."


def test_an_unknown_namespace_comes_with_those_that_there_are(server: FlakyServer, portal: Yardmaster) -> None:
    rows = [{"id": an_id(1), "slug": "ada"}, {"id": an_id(2), "slug": "vision"}]
    server.by_path = lambda asked: (200, {"results": rows, "next": None})
    with pytest.raises(NotFound) as refused:
        find_namespace(portal, "visoin")
    assert refused.value.remedy == "Use one of: vision. `yardmaster namespaces list` shows all."


def test_a_spec_gets_ids_and_keeps_what_it_does_not_know(portal: Yardmaster) -> None:
    spec = {
        "code": "train",
        "inputs": [{"dataset": "digits@1", "name": "a"}, "digits", {"dataset_version": "x"}, 5],
        "rolles": {},
    }
    assert resolve_spec(portal, spec) == {
        "code": an_id(5),
        "inputs": [
            {"name": "a", "dataset_version": an_id(4)},
            {"dataset_version": an_id(6)},
            {"dataset_version": "x"},
            5,
        ],
        "rolles": {},
    }
    assert resolve_spec(portal, {"code": 5, "inputs": "no"}) == {"code": 5, "inputs": "no"}
