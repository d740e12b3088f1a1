"""Which clients the portal serves, and what each side says."""

from __future__ import annotations

import pytest
from django.test import Client

from yardmaster_client.version import ANSWERED, API, HEADER, VERSION

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/me/"


def test_a_client_without_the_header_is_served_as_ever(client: Client):
    answer = client.get(ADDRESS)
    assert answer.status_code == 401
    assert ANSWERED not in answer.headers


@pytest.mark.parametrize("version", [VERSION, "0.1.7", "9.0.0", "0.2.0.dev3+local"])
def test_a_client_that_is_served_learns_the_portals_version(client: Client, version: str):
    answer = client.get(ADDRESS, headers={HEADER: f"{version}; api={API}"})
    assert answer.status_code == 401
    assert answer.headers[ANSWERED] == f"{VERSION}; api={API}; oldest-client=0.1.0"


@pytest.mark.parametrize(("said", "code"), [(f"0.0.9; api={API}", "client_too_old"), ("0.1.0; api=0", "client_too_old"),
                                            (f"9.0.0; api={API + 1}", "client_too_new")])  # fmt: skip
def test_a_client_of_another_time_is_refused_with_the_command_that_helps(client: Client, said: str, code: str):
    answer = client.post("/api/v1/auth/token/", {}, headers={HEADER: said})
    body = answer.json()
    assert (answer.status_code, body["code"]) == (426, code)
    assert body["command"] in body["remedy"]
    assert "pip install http" in body["command"]
    assert ANSWERED in answer.headers


@pytest.mark.parametrize(
    "said", ["", "x", "1.2; api=1", "1.2.3; api=", "1.2.3; api=1" + "x" * 900, "1.2.3; api=\u0661"]
)
def test_what_cannot_be_read_is_refused(client: Client, said: str):
    answer = client.get(ADDRESS, headers={HEADER: said})
    assert (answer.status_code, answer.json()["code"]) == (400, "client_unknown")


def test_pages_do_not_look_at_it(client: Client):
    assert client.get("/client/", headers={HEADER: "0.0.1; api=1"}).status_code == 200
