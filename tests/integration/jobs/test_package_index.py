"""The package index as tasks reach it: through the portal, bounded, and only what the index names."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from rest_framework.test import APIClient

from apps.environments import package_index as index_module
from apps.jobs.models import Job
from apps.jobs.state.task_auth import token_of
from tests.integration.jobs.world import task_of
from tests.real.package_index import PackageIndex, package_index, wheel

INDEX = "/api/v1/task/index/"
GREET = wheel("greet", "1.0", {"greet.py": ""})


@pytest.fixture
def upstream(settings) -> Iterator[PackageIndex]:
    with package_index(GREET) as one:
        settings.YARDMASTER_PACKAGE_INDEX = one.url
        yield one


def test_a_page_names_its_files_below_the_portal_and_they_have_their_bytes(job: Job, upstream) -> None:
    task = task_of(job)
    page = task.get(f"{INDEX}greet/")
    assert page.headers["Content-Type"].startswith("application/vnd.pypi.simple.v1+json")
    (file,) = page.json()["files"]
    assert file["url"].startswith(f"{INDEX}files/")
    assert len(file["hashes"]["sha256"]) == 64
    answer = task.get(file["url"])
    assert b"".join(answer.streaming_content) == GREET[1]
    assert answer.headers["Content-Length"] == str(len(GREET[1]))
    assert upstream.url not in json.dumps(page.json())


def test_pip_gives_the_token_as_a_password(job: Job, upstream) -> None:
    client = APIClient()
    given = base64.b64encode(f"task:{token_of(job.pk, 1)}".encode()).decode()
    client.credentials(HTTP_AUTHORIZATION=f"Basic {given}")
    assert client.get(f"{INDEX}greet/").status_code == 200
    client.credentials(HTTP_AUTHORIZATION="Basic " + base64.b64encode(b"task:wrong").decode())
    assert client.get(f"{INDEX}greet/").status_code == 401
    client.credentials(HTTP_AUTHORIZATION="Basic %%%")
    assert client.get(f"{INDEX}greet/").status_code == 401
    assert APIClient().get(f"{INDEX}greet/").status_code == 401


def test_people_have_no_use_of_it(ada, with_token, upstream) -> None:
    assert with_token(ada).get(f"{INDEX}greet/").status_code in (401, 403)


@pytest.mark.parametrize("name", ["missing", "..%2f..%2fetc", "a b", "x" * 200])
def test_a_name_that_the_index_does_not_know_is_not_found(job: Job, upstream, name: str) -> None:
    assert task_of(job).get(f"{INDEX}{name}/").status_code == 404


def test_no_file_is_served_but_those_that_a_page_has_named(job: Job, upstream) -> None:
    assert task_of(job).get(f"{INDEX}files/made-up/greet-1.0-py3-none-any.whl").status_code == 404


def test_an_index_that_is_away_is_a_503_that_pip_waits_for(job: Job, upstream) -> None:
    upstream.is_away = True
    assert task_of(job).get(f"{INDEX}greet/").status_code == 503


def test_a_portal_without_an_index_says_so(job: Job, settings) -> None:
    settings.YARDMASTER_PACKAGE_INDEX = ""
    answer = task_of(job).get(f"{INDEX}greet/")
    assert (answer.status_code, answer.json()["code"]) == (409, "packages_offline")
    assert "YARDMASTER_PACKAGE_INDEX" in answer.json()["remedy"]


def test_a_page_without_end_is_not_read_to_its_end(job: Job, upstream, monkeypatch) -> None:
    monkeypatch.setattr(index_module, "MOST_PAGE", 50)
    assert task_of(job).get(f"{INDEX}greet/").status_code == 503


def test_a_file_that_is_too_large_is_refused(job: Job, upstream, settings) -> None:
    (file,) = task_of(job).get(f"{INDEX}greet/").json()["files"]
    settings.YARDMASTER_PACKAGES_LIMIT = 10
    assert task_of(job).get(file["url"]).status_code == 413


PAGES = {
    "json": (b'{"files": [{"filename": "a-1.whl", "url": "../../a-1.whl", "hashes": {}, "more": 1}]}', 1),
    "no page": (b"[]", None),
    "deep": (b"[" * 100_000, None),
    "other schemes": (b'{"files": [{"filename": "a-1.whl", "url": "file:///etc/passwd", "hashes": {}}]}', 0),
}


@pytest.mark.parametrize("kind", PAGES)
def test_pages_in_json_are_read_with_care(kind: str) -> None:
    content, count = PAGES[kind]
    if count is None:
        with pytest.raises(index_module.Unavailable):
            index_module._from_json(content)
    else:
        assert len(index_module._from_json(content)) == 1
