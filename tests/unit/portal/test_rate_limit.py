"""Which allowances a request takes, and how many are under way at once."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from portal import rate_limit
from portal.callers import Caller
from portal.rate_limit import RateLimit, demand_of, headers_of, open_demand_of
from yardmaster.allowances import Allowance, Outcome, Taking

ADA, TASK, STRANGER = Caller("user", "ada"), Caller("task", "job"), Caller("stranger", "10.0.0.1")
ID = uuid.UUID(int=7)


def names(caller: Caller, method: str, path: str, kind: str = "http") -> list[str]:
    return [one.allowance.name for one in demand_of(kind, method, path, caller, "10.0.0.1").takings]


@pytest.mark.parametrize(
    ("caller", "method", "path", "expected"),
    [
        (ADA, "GET", "/api/v1/jobs/", ["user"]),
        (ADA, "POST", "/api/v1/jobs/", ["user", "launches"]),
        (ADA, "POST", f"/api/v1/jobs/{ID}/retry/", ["user", "launches"]),
        (ADA, "POST", f"/api/v1/dataset-versions/{ID}/prepare/", ["user", "launches"]),
        (ADA, "POST", f"/api/v1/model-versions/{ID}/batch/", ["user", "launches"]),
        (ADA, "POST", f"/model-versions/{ID}/batch/", ["user", "launches"]),
        (ADA, "POST", "/api/v1/services/", ["user", "launches"]),
        (ADA, "GET", "/api/v1/services/", ["user"]),
        (ADA, "POST", f"/api/v1/model-versions/{ID}/predict/", ["user", "predictions"]),
        (ADA, "POST", f"/api/v1/model-versions/{ID}/classify/", ["user", "predictions"]),
        (ADA, "POST", f"/api/v1/services/{ID}/v1/models/digits:predict", ["user", "predictions"]),
        (ADA, "POST", f"/api/v1/models/{ID}/stages/production/v1/models/digits:classify", ["user", "predictions"]),
        (ADA, "GET", f"/api/v1/models/{ID}/stages/", ["user"]),
        (ADA, "POST", f"/model-versions/{ID}/try/predict/", ["user", "predictions"]),
        (ADA, "POST", f"/model-versions/{ID}/try/start/", ["user", "launches"]),
        (ADA, "PUT", f"/api/v1/dataset-versions/{ID}/volume/", ["user", "launches"]),
        (ADA, "POST", f"/datasets/versions/{ID}/volume/", ["user", "launches"]),
        (ADA, "POST", f"/api/v1/namespaces/{ID}/volumes/{ID}/clean/", ["user", "launches"]),
        (ADA, "DELETE", f"/api/v1/namespaces/{ID}/volumes/{ID}/versions/{ID}/", ["user", "launches"]),
        (ADA, "DELETE", f"/api/v1/namespaces/{ID}/volumes/{ID}/", ["user"]),
        (ADA, "POST", f"/namespaces/{ID}/volumes/{ID}/versions/{ID}/remove/", ["user", "launches"]),
        (ADA, "POST", "/api/v1/job-templates/", ["user", "launches"]),
        (ADA, "PATCH", f"/api/v1/job-templates/{ID}/", ["user", "launches"]),
        (ADA, "DELETE", f"/api/v1/job-templates/{ID}/", ["user"]),
        (ADA, "POST", f"/api/v1/job-templates/{ID}/launch/", ["user", "launches"]),
        (ADA, "POST", "/jobs/templates/new/", ["user", "launches"]),
        (ADA, "POST", f"/jobs/templates/{ID}/", ["user", "launches"]),
        (ADA, "POST", f"/jobs/templates/{ID}/edit/", ["user", "launches"]),
        (ADA, "GET", f"/jobs/templates/{ID}/", ["user", "expensive"]),
        (ADA, "GET", f"/jobs/templates/{ID}/revisions/3/", ["user", "expensive"]),
        (ADA, "POST", f"/jobs/templates/{ID}/revisions/3/", ["user", "launches"]),
        (ADA, "GET", f"/api/v1/job-templates/{ID}/revisions/", ["user", "expensive"]),
        (ADA, "POST", f"/api/v1/schedules/{ID}/run/", ["user", "launches"]),
        (ADA, "POST", f"/jobs/schedules/{ID}/run/", ["user", "launches"]),
        (ADA, "POST", "/api/v1/sweeps/", ["user", "launches"]),
        (ADA, "GET", "/api/v1/sweeps/", ["user"]),
        (ADA, "POST", "/sweeps/new/", ["user", "launches"]),
        (ADA, "POST", "/api/v1/uploads/", ["user", "uploads"]),
        (ADA, "POST", "/api/v1/code-imports/", ["user", "uploads"]),
        (ADA, "GET", "/api/v1/code-imports/", ["user"]),
        (ADA, "GET", f"/api/v1/code-imports/{ID}/", ["user"]),
        (ADA, "POST", "/jobs/launch/git/", ["user", "uploads"]),
        (ADA, "GET", f"/jobs/launch/git/{ID}/", ["user"]),
        (ADA, "GET", f"/api/v1/jobs/{ID}/logs/search/", ["user", "expensive"]),
        (ADA, "GET", f"/api/v1/jobs/{ID}/logs/lines/", ["user"]),
        (ADA, "POST", "/api/v1/jobs/import/", ["user", "expensive"]),
        (ADA, "POST", "/api/v1/jobs/export/", ["user", "expensive"]),
        (ADA, "GET", f"/api/v1/jobs/{ID}/export/", ["user", "expensive"]),
        (ADA, "GET", f"/code/{ID}/", ["user", "expensive"]),
        (ADA, "GET", f"/code/{ID}/compare/", ["user", "expensive"]),
        (ADA, "GET", f"/datasets/{ID}/changes/", ["user", "expensive"]),
        (ADA, "GET", f"/api/v1/dataset-versions/{ID}/entries/", ["user", "expensive"]),
        (ADA, "GET", f"/api/v1/model-versions/{ID}/files/", ["user", "expensive"]),
        (ADA, "GET", f"/api/v1/dataset-versions/{ID}/files/content/", ["user"]),
        (ADA, "GET", f"/api/v1/dataset-versions/{ID}/check/", ["user", "expensive"]),
        (ADA, "GET", f"/datasets/versions/{ID}/check/", ["user", "expensive"]),
        (ADA, "GET", f"/api/v1/code-versions/{ID}/archive/", ["user", "expensive"]),
        (ADA, "GET", f"/api/v1/uploads/{ID}/", ["user"]),
        (TASK, "GET", f"/api/v1/dataset-versions/{ID}/files/", ["task"]),
        (ADA, "GET", "/jobs/compare/", ["user", "expensive"]),
        (STRANGER, "GET", "/", ["stranger"]),
        (STRANGER, "PUT", "/storage/parts/x/1", ["objects"]),
        (ADA, "GET", "/storage/objects/x", ["objects"]),
        (TASK, "POST", "/api/v1/task/log/", ["task"]),
    ],
)
def test_what_a_request_takes(caller, method, path, expected):
    assert names(caller, method, path) == expected


def test_tasks_are_counted_per_job_and_here():
    found = demand_of("http", "POST", "/api/v1/task/log/", TASK, "10.0.0.1")
    assert (found.is_counted_here, found.slots, found.takings[0].who) == (True, (), "task job")


def test_parts_have_places_per_address_and_downloads_none():
    found = demand_of("http", "PUT", "/storage/parts/x/1", STRANGER, "10.0.0.1")
    assert [(one.name, one.most) for one in found.slots] == [("sent from 10.0.0.1", 100)]
    assert demand_of("http", "GET", "/storage/objects/x", STRANGER, "10.0.0.1").slots == ()


@pytest.mark.parametrize(
    "path",
    [
        f"/api/v1/dataset-versions/{ID}/archive/",
        f"/model-versions/{ID}/archive/",
        f"/api/v1/jobs/{ID}/outputs/archive/",
        f"/jobs/{ID}/outputs/archive/",
    ],
)
def test_archives_have_few_places_until_the_client_has_read_them(path: str):
    found = demand_of("http", "GET", path, ADA, "10.0.0.1")
    assert [(one.name, one.most) for one in found.slots] == [("user ada", 100), ("archives user ada", 3)]
    assert [one.name for one in found.work.slots] == ["expensive user ada", "expensive"]
    assert found.read_within == 60
    assert demand_of("http", "GET", path, STRANGER, "10.0.0.1").read_within is None


async def test_a_client_that_does_not_read_an_archive_is_given_up(monkeypatch):
    monkeypatch.setattr(rate_limit, "_READ_WITHIN", 0.05)
    closed: list[str] = []

    async def caller(scope):
        return ADA

    async def archive(scope, receive, send):
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        finally:
            closed.append("archive")

    async def unread(message):
        if message["type"] == "http.response.body":
            await asyncio.sleep(3600)

    monkeypatch.setattr(rate_limit, "caller_of", caller)
    monkeypatch.setattr(rate_limit, "_counted", lambda demand: asyncio.sleep(0, {}))
    scope = {"type": "http", "method": "GET", "path": f"/api/v1/dataset-versions/{ID}/archive/", "headers": []}
    limit = RateLimit(archive)
    async with asyncio.timeout(5):
        await limit(scope, None, unread)
    assert closed == ["archive"]
    assert limit._slots._kinds == {}


def test_sockets_have_places_per_user_and_per_address():
    found = demand_of("websocket", "GET", "/ws/jobs/", ADA, "10.0.0.1")
    assert [one.name for one in found.slots] == ["sockets user ada", "sockets at 10.0.0.1"]


def test_the_allowance_that_is_nearest_to_its_end_is_told():
    wide, tight = Taking(Allowance("wide", 100, 60), "ada"), Taking(Allowance("tight", 10, 60), "ada")
    told = headers_of([wide, tight], Outcome(None, (10, 8)))
    assert (told["RateLimit-Limit"], told["RateLimit-Remaining"]) == ("10", "1")
    assert told["RateLimit-Policy"] == '"tight";q=10;w=60'
    over = headers_of([wide, tight], Outcome(wide, (100, 9)))
    assert (over["RateLimit-Limit"], over["RateLimit-Remaining"]) == ("100", "0")


def test_what_is_expensive_has_places_for_its_work_and_a_strangers_request_none():
    found = demand_of("http", "GET", "/find/", ADA, "10.0.0.1")
    assert [one.name for one in found.slots] == ["user ada"]
    assert [one.name for one in found.work.slots] == ["expensive user ada", "expensive"]
    assert demand_of("http", "POST", "/find/", STRANGER, "10.0.0.1").work.slots == ()


@pytest.mark.parametrize(
    "path",
    [
        f"/api/v1/model-versions/{ID}/predict/",
        f"/api/v1/model-versions/{ID}/regress/",
        f"/api/v1/services/{ID}/",
        f"/api/v1/services/{ID}/v1/models/digits:predict",
        f"/api/v1/models/{ID}/stages/production/v1/models/digits:predict",
        f"/model-versions/{ID}/try/",
        f"/model-versions/{ID}/try/predict/",
        f"/model-versions/{ID}/try/extend/",
    ],
)
def test_who_waits_for_a_model_server_keeps_no_one_from_pages_of_data(path: str):
    found = demand_of("http", "GET", path, ADA, "10.0.0.1")
    assert [one.name for one in found.work.slots] == ["served user ada", "served"]
    assert demand_of("http", "GET", path, STRANGER, "10.0.0.1").work.slots == ()


@pytest.mark.parametrize(
    ("method", "below"), [("GET", ""), ("DELETE", ""), ("GET", "files/"), ("POST", "files/"), ("POST", "complete/")]
)
def test_what_asks_the_store_for_many_files_has_places_of_its_own(method: str, below: str):
    path = f"/api/v1/uploads/{ID}/{below}"
    found = demand_of("http", method, path, ADA, "10.0.0.1")
    assert [(one.name, one.most) for one in found.work.slots] == [("sent user ada", 2), ("sent", 6)]
    assert demand_of("http", method, path, STRANGER, "10.0.0.1").work.slots == ()
    assert demand_of("http", "POST", f"/api/v1/uploads/{ID}/parts/", ADA, "10.0.0.1").work.slots == ()


def test_the_list_of_services_waits_for_none():
    assert demand_of("http", "GET", "/api/v1/services/", ADA, "10.0.0.1").work.slots == ()


@pytest.mark.parametrize("path", ["/static/app.js", "/static/nothing", "/readyz"])
def test_what_anybody_may_ask_for_is_counted_by_address_and_here(path: str):
    found = open_demand_of(path, "10.0.0.1")
    assert found is not None
    assert (found.is_counted_here, [one.allowance.name for one in found.takings]) == (True, ["open"])
    assert [one.name for one in found.slots] == ["open 10.0.0.1"]


def test_the_keepers_question_is_not_counted_and_only_its_very_address():
    found = open_demand_of("/healthz", "10.0.0.1")
    assert found is not None
    assert (found.takings, [one.name for one in found.slots]) == ([], ["health"])
    assert open_demand_of("/healthzX", "10.0.0.1") is None
    assert open_demand_of("/readyz/", "10.0.0.1") is None
