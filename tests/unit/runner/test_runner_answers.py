"""Which answers are the portal's word, and what they mean."""

from __future__ import annotations

import json

import pytest

from tests.fakes.in_between import FOREIGN
from yardmaster_runner.answers import (
    FINAL_CODES,
    GONE_CODES,
    LATER_CODES,
    PROBLEM,
    TOKEN_CODES,
    PortalAway,
    PortalRefused,
    PortalRejected,
    meaning,
)
from yardmaster_runner.portal import Portal
from yardmaster_runner.task_api import TaskApi


def problem(status: int, code: str) -> tuple[int, str, bytes]:
    return status, PROBLEM, json.dumps({"status": status, "code": code, "detail": "so"}).encode()


class Answering(Portal):
    """A portal of which every answer is the same."""

    def __init__(self, status: int, kind: str, content: bytes) -> None:
        self.answer = (status, kind, content, "")
        self.is_near = True

    def call(self, method, path, *args, **kwargs):  # type: ignore[no-untyped-def]
        return meaning(*self.answer, f"{method} {path}")


CALLS = {
    "order": lambda api: api.order(),
    "report": lambda api: api.report({}),
    "place": lambda api: api.log_place(1),
    "write": lambda api: api.log_write(1, 0, 1, b"a\n", [(0, 1)]),
    "gap": lambda api: api.log_gap(1, 0, 1, 1),
    "end": lambda api: api.log_end(1),
    "begin": lambda api: api.begin_upload("model", {}),
    "sign": lambda api: api.part_urls("u", [(0, 1, "0" * 64)]),
    "complete": lambda api: api.complete_upload("u"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_not_the_portals_word_is_no_answer_to_any_call(call: str, name: str) -> None:
    with pytest.raises(PortalAway) as raised:
        CALLS[call](TaskApi(Answering(*FOREIGN[name]), "worker", 0))
    assert not raised.value.has_answered


@pytest.mark.parametrize("code", sorted(FINAL_CODES))
def test_a_code_of_the_task_api_is_the_portals_word(code: str) -> None:
    with pytest.raises(PortalRejected) as raised:
        meaning(*problem(409, code), "", "POST task/log/")
    assert raised.value.is_gone == (code in GONE_CODES)
    assert str(raised.value) == "409 POST task/log/: so"


@pytest.mark.parametrize("code", sorted(TOKEN_CODES))
def test_only_the_portal_refuses_a_token(code: str) -> None:
    with pytest.raises(PortalRefused):
        meaning(*problem(401, code), "", "GET task/order/")


@pytest.mark.parametrize("code", sorted(LATER_CODES))
def test_later_is_not_never(code: str) -> None:
    with pytest.raises(PortalAway) as raised:
        meaning(*problem(503, code), "7", "GET task/order/")
    assert (raised.value.has_answered, raised.value.retry_after) == (True, 7.0)


def test_who_says_later_must_be_the_portal_to_hold_a_script_up() -> None:
    with pytest.raises(PortalAway) as raised:
        meaning(503, "text/html", b"<h1>Maintenance</h1>", "7", "POST task/log/")
    assert (raised.value.has_answered, raised.value.retry_after) == (False, 7.0)


def test_a_problem_whose_status_was_changed_on_the_way_is_none() -> None:
    _, kind, content = problem(503, "unknown_task")
    with pytest.raises(PortalAway):
        meaning(404, kind, content, "", "POST task/log/")
