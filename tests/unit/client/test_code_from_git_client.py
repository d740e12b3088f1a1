"""Code from Git with the SDK and the command: what the portal is asked for, and what of its answers is shown."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.unit.client.flaky_server import FlakyServer
from yardmaster_client import git
from yardmaster_client.aio import AsyncYardmaster
from yardmaster_client.cli.job_code import with_code
from yardmaster_client.errors import PortalError
from yardmaster_client.names import resolve_spec
from yardmaster_client.portal import Yardmaster

VERSION = "01900001-0000-7000-8000-000000000000"
ADDRESS = "git+https://github.com/lab/digits@v1"
BEGUN = {"id": "1", "state": "fetching", "repository": "https://github.com/lab/digits", "ref": "v1", "notes": {}}
READY = BEGUN | {
    "state": "ready", "code_version": VERSION, "commit": "a" * 40, "is_new": True, "bytes": 5,
    "notes": {"submodules": {"count": 4, "first": ["a", "b", "c", "d"]}},
}  # fmt: skip
PROBLEM = {"kind": "Unprocessable", "code": "git_ref_not_found", "detail": "No v1.", "remedy": "Did you mean v2?",
           "errors": [{"field": "ref", "code": "git_ref_not_found", "message": "No v1."}]}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(git, "_LOOK_EVERY", 0.0)


@pytest.fixture
def portal(server: FlakyServer):
    server.answers = [(202, BEGUN), (200, BEGUN), (200, READY)]
    with Yardmaster(server.url, "token") as one:
        yield one


def sent(server: FlakyServer) -> dict[str, str]:
    return json.loads(server.asked[0].body)


def test_an_import_is_waited_for_and_each_news_is_told(portal, server):
    seen: list[git.GitImport] = []
    found = portal.code.fetch(ADDRESS, folder="x", namespace="lab", each=seen.append)
    assert (found.code_version, [one.state for one in seen]) == (VERSION, ["fetching", "ready"])
    assert found.warnings == ["Submodules are left out: a, b, c and 1 more."]
    assert sent(server) == {"address": ADDRESS, "folder": "x", "namespace": "lab"}


def test_why_it_failed_is_raised_as_the_portal_says_it(portal, server):
    server.answers = [(202, BEGUN), (200, BEGUN | {"state": "failed", "problem": PROBLEM})]
    with pytest.raises(PortalError) as caught:
        portal.code.fetch(ADDRESS)
    assert (caught.value.code, caught.value.remedy) == ("git_ref_not_found", "Did you mean v2?")
    assert caught.value.errors[0].field == "ref"


def test_the_asynchronous_sdk_fetches_too(server):
    server.answers = [(202, BEGUN), (200, READY)]

    async def fetched() -> str | None:
        async with AsyncYardmaster(server.url, "token") as one:
            return (await one.code.fetch(ADDRESS)).code_version

    assert asyncio.run(fetched()) == VERSION


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ADDRESS, {"address": ADDRESS}),
        ({"git": "https://h/a", "ref": "v1", "folder": "b", "name": "c", "token": "T"},
         {"address": "https://h/a", "ref": "v1", "folder": "b", "name": "c", "git_token": "T"}),
    ],
)  # fmt: skip
def test_a_job_file_names_a_repository(portal, server, code, said):
    assert resolve_spec(portal, {"code": code}, "lab") == {"code": VERSION}
    assert sent(server) == said | {"namespace": "lab"}


def test_a_key_that_is_not_known_is_refused_before_the_portal_is_asked(portal, server):
    with pytest.raises(ValueError, match="'branch' is not known"):
        resolve_spec(portal, {"code": {"git": "https://h/a", "branch": "x"}})
    assert server.asked == []


def test_the_command_goes_before_the_file_and_names_the_secret(portal, server, capsys):
    spec = with_code(portal, {"name": "x", "code": {"git": "https://h/other"}}, ADDRESS, "TOKEN", None)
    assert spec == {"name": "x", "code": VERSION}
    assert sent(server) == {"address": ADDRESS, "git_token": "TOKEN"}
    said = capsys.readouterr().err
    assert "Submodules are left out" in said
    assert f"commit {'a' * 12}." in said


def test_code_that_is_not_from_git_is_left_alone(portal, server):
    for spec in ({"code": "digits@1"}, {"code": 5}, {"code": {"x": 1}}, {}):
        assert with_code(portal, dict(spec), None, None, None) == spec
    assert server.asked == []
