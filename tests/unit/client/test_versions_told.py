"""What the client says of itself, and what it makes of the portal's answer."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.unit.client.flaky_server import FlakyServer
from yardmaster_client.cli.main import run
from yardmaster_client.transport import Transport
from yardmaster_client.version import ANSWERED, API, VERSION, NewerThanPortal, newer_than


def test_every_request_names_the_client(server: FlakyServer, transport: Transport):
    transport.get("me/")
    asked = server.asked[0].headers
    assert asked["yardmaster-client"] == f"{VERSION}; api={API}"
    assert asked["user-agent"] == f"yardmaster-client/{VERSION}"


@pytest.mark.parametrize("portal", ["0.0.9", "0.0.9.dev1"])
def test_a_portal_that_is_older_is_named(portal: str):
    assert newer_than(f"{portal}; api=1; oldest-client=0.0.1") == portal


@pytest.mark.parametrize("said", [f"{VERSION}; api=1", "99.0.0; api=1", "", "x; api=1", "1"])
def test_others_are_not(said: str):
    assert newer_than(said) is None


def test_the_sdk_warns_once(server: FlakyServer, transport: Transport):
    server.headers = {ANSWERED: "0.0.1; api=1; oldest-client=0.0.1"}
    with pytest.warns(NewerThanPortal, match=r"newer than the portal, 0\.0\.1"):
        transport.get("me/")
    transport.get("me/")  # a second warning would be an error


@pytest.fixture
def command(server: FlakyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlakyServer:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("YARDMASTER_URL", server.url)
    monkeypatch.setenv("YARDMASTER_TOKEN", "x")
    server.answers = [(200, {"results": [], "next": None})]
    return server


def test_the_command_warns_once_for_each_version_of_the_portal(command: FlakyServer, capsys):
    for portal, is_said in (("0.0.1", True), ("0.0.1", False), ("0.0.2", True), (VERSION, False)):
        command.headers = {ANSWERED: f"{portal}; api=1"}
        assert run(["jobs", "list", "--json"]) == 0
        out, err = capsys.readouterr()
        assert ("newer than the portal" in err) is is_said
        assert out == "[]\n", "results stay results"


def test_it_leaves_other_warnings_alone(command: FlakyServer, recwarn):
    command.headers = {ANSWERED: "0.0.1; api=1"}
    assert run(["jobs", "list"]) == 0
    warnings.warn("another", UserWarning, stacklevel=1)
    assert [str(one.message) for one in recwarn] == ["another"]


def test_a_client_that_is_too_old_shows_the_command_that_updates_it(command: FlakyServer, capsys):
    remedy = "Update it: pip install https://portal/client/yardmaster_client-9.0.0-py3-none-any.whl"
    command.answers = [(426, {"code": "client_too_old", "detail": "This client is too old.", "remedy": remedy})]
    assert run(["jobs", "list"]) == 1
    assert remedy in capsys.readouterr().err
