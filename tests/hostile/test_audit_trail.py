"""What an attacker would rather not see written down, and how they might keep it out, forge it or drown it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import httpx2
import pytest

from tests.hostile.conftest import http, in_browser
from tests.hostile.test_origins import PASSWORD, sign_in
from tests.real.portal import LIGHT
from tests.real.scene import Scene, scene

pytestmark = [pytest.mark.slow, pytest.mark.linux]

AUDIT = "/api/v1/audit/"
FORMULA = "=HYPERLINK(0)"


@pytest.fixture(scope="module")
def audited() -> Iterator[Scene]:
    """A portal whose audit has room for few failures an hour."""
    with scene(LIGHT, {"YARDMASTER_AUDIT_FAILURES_PER_HOUR": "12"}) as one:
        yield one


@pytest.fixture
def admin(audited: Scene) -> Iterator[httpx2.Client]:
    with http(audited.portal.url, audited.token) as client:
        yield client


def events(admin: httpx2.Client, **wanted: str) -> list[dict[str, object]]:
    return list(admin.get(AUDIT, params=wanted).json()["results"])


def guess(portal: str, name: str, **headers: str) -> int:
    login = {"username": name, "password": "not the password", "name": "cli"}
    with http(portal) as stranger:
        return stranger.post("/api/v1/auth/token/", json=login, headers=headers).status_code


def test_guesses_leave_a_trace_from_where_they_came_whatever_they_claim(audited: Scene, admin: httpx2.Client):
    forged = {"X-Forwarded-For": "203.0.113.9", "X-Real-IP": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
    agent = {"User-Agent": FORMULA + "x" * 5000}
    assert guess(audited.portal.url, "admin", **forged, **agent) == 401
    (event,) = [one for one in events(admin, action="session.fail") if one["facts"] == {"name": "admin"}]
    assert event["address"] == "127.0.0.1"
    assert event["agent"] == (FORMULA + "x" * 5000)[:200]
    rows = csv.DictReader(io.StringIO(admin.get(f"{AUDIT}export/").text))
    cells = [cell for row in rows for cell in row.values()]
    assert any(FORMULA in cell for cell in cells)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)


def test_a_flood_of_guesses_does_not_fill_the_database(audited: Scene, admin: httpx2.Client):
    codes = [guess(audited.portal.url, f"name-{n}") for n in range(30)]
    tried = codes.count(401)
    assert tried > 12, "the attempts were counted, not cut off before"
    rows = events(admin, action="session.fail", page_size="200")
    assert len(rows) <= 2 * (12 + 1), "in each of the two hours that the test may touch"
    assert sum(int(str(one["count"])) for one in rows) >= tried


def test_a_flood_of_other_names_hides_no_guess_at_an_account(audited: Scene, admin: httpx2.Client):
    audited.portal.token_of("hidden")
    codes = [guess(audited.portal.url, f"other-{n}") for n in range(16)]
    assert codes.count(401) > 12, "the hour is full"
    assert guess(audited.portal.url, "hidden") == 401
    names = [one["facts"].get("name") for one in events(admin, action="session.fail", page_size="200")]
    assert "hidden" in names


def test_a_wrong_present_password_is_written_down(audited: Scene, admin: httpx2.Client):
    audited.portal.token_of("left-open")
    with in_browser(audited.portal.url, "left-open") as thief:
        wish = {"email": "thief@example.org", "password": "not the password"}
        assert "This is not your password" in thief.post("/account/address/", data=wish).text
    assert [one["actor_name"] for one in events(admin, action="password.fail")] == ["left-open"]


def test_whatever_a_thief_of_credentials_does_is_written_down(audited: Scene, admin: httpx2.Client):
    """Signing in and out, a token and its first use, another password, a download, with address and client."""
    audited.portal.token_of("robbed")
    agent = {"User-Agent": "thief/1.0"}
    with http(audited.portal.url) as thief:
        thief.headers.update(agent)
        sign_in(thief, "robbed")
        token = thief.cookies["yardmaster_csrf"]
        headers = {"X-CSRFToken": token, "Referer": audited.portal.url}
        made = thief.post("/api/v1/tokens/", json={"name": "backdoor"}, headers=headers).json()
        with http(audited.portal.url, made["token"]) as program:
            program.headers.update(agent)
            assert program.get("/api/v1/me/").status_code == 200
        new = "another long password"
        form = {"oldpassword": PASSWORD, "password1": new, "password2": new}
        assert thief.post("/accounts/password/change/", data=form, headers=headers).status_code == 302
        headers["X-CSRFToken"] = thief.cookies["yardmaster_csrf"]
        assert thief.post("/accounts/logout/", headers=headers).status_code == 302
    told = [one for one in events(admin, actor_name="robbed") if one["agent"] == "thief/1.0"]
    actions = ["session.end", "password.change", "token.first_use", "token.create", "session.begin"]
    assert [one["action"] for one in told] == actions
    assert {one["address"] for one in told} == {"127.0.0.1"}


def test_an_administrator_who_reads_and_takes_what_is_not_theirs_is_written_down(audited: Scene, admin: httpx2.Client):
    owner = http(audited.portal.url, audited.portal.token_of("owner"))
    with owner, http(audited.portal.url, audited.token) as curious:
        namespace = owner.get("/api/v1/me/").json()["namespaces"][0]["id"]
        for _ in range(3):
            assert curious.get(f"/api/v1/namespaces/{namespace}/").status_code == 200
            assert owner.get(f"/api/v1/namespaces/{namespace}/").status_code == 200
        read = events(admin, action="administrator.read", subject=f"namespace:{namespace}")
        assert {one["actor_name"] for one in read} == {"admin"}
        assert len(read) <= 2, "one in an hour, and the test may touch two"
        # The owner, who manages the namespace, sees that; another tenant does not.
        assert [one["id"] for one in events(owner, action="administrator.read")] == [one["id"] for one in read]
    with http(audited.portal.url, audited.portal.token_of("other")) as other:
        assert events(other, action="administrator.read") == []
        lines = other.get(f"{AUDIT}export/", params={"as": "jsonl"}).text.splitlines()
        assert {json.loads(line)["actor_name"] for line in lines} <= {"other", ""}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nobody_changes_what_is_written_down(admin: httpx2.Client, method: str):
    before = events(admin)
    for path in (AUDIT, f"{AUDIT}{before[0]['id']}/", f"{AUDIT}export/"):
        assert admin.request(method, path, json={}).status_code in (403, 404, 405)
    assert before[0] in events(admin)
