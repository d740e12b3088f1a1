"""The authorisation matrix: every address, with every method, asked by everyone, answers as is written down, and what
is written down keeps the rules. See `matrix.py`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest
from django.db import transaction

from apps.api.allowances import forget_all
from tests.integration.security.matrix import (
    FILE,
    OTHERS,
    SCOPES,
    WHO,
    Route,
    letter,
    patterns,
    routes,
    table_read,
    table_write,
)
from tests.integration.security.populated import Populated

_WRITES = os.environ.get("YARDMASTER_MATRIX", "")
"""`write`: every line is written again. `new`: missing lines are added, and those of no address are dropped."""


@pytest.fixture
def populated(admin, settings, tmp_path) -> Populated:
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects"}
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"options": options}
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"
    return Populated(admin)


def answers_of(populated: Populated, who: str, asked: list[Route]) -> dict[str, str]:
    """What this one gets at these addresses. Nothing that is done stays done."""
    found = {}
    for route in asked:
        client = populated.client_of(who)
        forget_all()
        with transaction.atomic():
            ask = getattr(client, route.method.lower())
            answer = ask(populated.address(route), **({} if route.is_safe else {"data": {}, "format": "json"}))
            transaction.set_rollback(True)
        answer.close()
        assert answer.status_code < 500 or answer.status_code == 503, (str(route), who, answer.status_code)
        found[str(route)] = letter(answer.status_code, answer.headers.get("Location", ""))
    return found


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.timeout(1_800 if _WRITES else 600)
@pytest.mark.parametrize("who", WHO if not _WRITES else ["all"])
def test_everyone_gets_at_every_address_what_is_written_down(populated, who):
    kept = table_read()
    if _WRITES:
        asked = [one for one in routes() if _WRITES == "write" or str(one) not in kept]
        answers = {one: answers_of(populated, one, asked) for one in WHO}
        came = {str(route): {one: answers[one][str(route)] for one in WHO} for route in asked}
        table_write({str(route): came.get(str(route)) or kept[str(route)] for route in routes()})
        return
    wrong = {
        name: f"{kept[name][who] if name in kept else 'no line'}, now {found}"
        for name, found in answers_of(populated, who, routes()).items()
        if name not in kept or kept[name][who] != found
    }
    assert not wrong, f"{FILE.name}, as {who}: written, and what came: {wrong}"


def test_every_address_has_a_line_and_no_line_is_for_none():
    assert sorted(table_read()) == sorted(map(str, routes()))
    assert set(OTHERS) <= {text for text, _ in patterns()}


_OPEN = (
    "/accounts/",
    "/api/v1/auth/",
    "/api/v1/schema/",
    "/sign-in/",
    "/client/",
    "/device/",
    "/invitation/",
    "/unsubscribe/",
)
"""Where one comes without being signed in: to sign in, or to read what the portal is."""
_EXPLAINED = {
    "PUT    /api/v1/dataset-versions/<uuid:version_id>/volume/": "launches a job that copies: scope jobs",
    "DELETE /api/v1/tokens/current/": "a token may always end itself",
    "POST   /code/<uuid:collection_id>/upload/": "discards one's own upload, whatever the address names",
    "POST   /datasets/<uuid:collection_id>/upload/": "discards one's own upload, whatever the address names",
    "GET    /removals/": "leads to the page of the admin area, which asks who comes",
    "POST   /removals/": "leads to the page of the admin area, which asks who comes",
}
"""Lines that break a rule, and why they may."""
_OBJECTS = (
    "namespace_id",
    "job_id",
    "<uuid:id>",
    "version_id",
    "collection_id",
    "model_id",
    "service_id",
    "session_id",
)


def test_what_is_written_down_keeps_the_rules():
    """One test for all lines: nine hundred would take longer to begin and to end than to decide."""
    rows = table_read()
    broken = {str(route): rules for route in routes() if (rules := list(_broken(route, rows[str(route)])))}
    assert not broken


def _broken(route: Route, row: Mapping[str, str]) -> Iterator[str]:
    """The rules that the line of this address breaks."""
    if str(route) in _EXPLAINED:
        return
    if route.is_task:
        if not set(row.values()) <= {"L", "F", "-"}:
            yield "tasks alone come here, with tokens of their own"
        return
    is_open = f"/{route.pattern}".startswith(_OPEN)
    if not is_open and row["anonymous"] not in ("L", "-"):
        yield "no one comes here unknown"
    if any(name in route.pattern for name in _OBJECTS) and row["stranger"] not in ("F", "H", "-"):
        yield "what belongs to others is hidden or refused"
    if route.is_api and not route.is_safe and not is_open and row["read"] not in ("F", "L", "-", "H"):
        yield "a token that reads changes nothing"
    administers = route.is_api and row["administrator"] == "A" and row["manager"] in "FH"
    if administers and not all(row[scope] in "FLH" for scope in ("jobs", "data")):
        yield "the scope admin administers"
    others = {row[one] for one in ("stranger", "viewer", "member", "manager")}
    if f"/{route.pattern}".startswith("/admin/") and not others <= {"F", "H", "-"}:
        yield "administrators alone come here"
    if not (is_open or row["service"] == row["member"] or row["service"] in "FHL-" or row["member"] in "L-"):
        yield "a service account is no more than a member"
    order = [row[one] for one in ("viewer", "member", "manager")]
    if any(before in "A" and after in "FH" for before, after in pairwise(order)):
        yield "who may do more may do what others may"
    if not set(SCOPES) <= row.keys():
        yield "every scope has a letter"


def test_a_line_that_breaks_a_rule_is_found():
    row = dict.fromkeys(WHO, "A")
    assert list(_broken(Route("api/v1/jobs/<uuid:job_id>/", "DELETE"), row)) == [
        "no one comes here unknown",
        "what belongs to others is hidden or refused",
        "a token that reads changes nothing",
    ]
    assert list(_broken(Route("api/v1/task/log/", "POST"), row)) == ["tasks alone come here, with tokens of their own"]
    assert "administrators alone come here" in list(_broken(Route("admin/", "GET"), row))
