"""What the portal's task API really answers, read as the runner reads it; and a Host that is not the portal's."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from django.http import HttpResponseBase
from rest_framework.test import APIClient

from apps.jobs.models import Job
from apps.jobs.state.task_auth import token_of
from portal.client_errors import ClientErrors
from tests.integration.jobs.world import task_of
from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected, meaning

TASK = "/api/v1/task/"
LOG = f"{TASK}log/?role=worker&index=0"


def understood(answer: HttpResponseBase) -> dict:
    headers = answer.headers
    retry_after = headers.get("Retry-After", "")
    return meaning(answer.status_code, headers["Content-Type"], answer.content, retry_after, "the call")


def sent(client: APIClient, where: str, data: bytes = b"a\n") -> HttpResponseBase:
    return client.post(where, data, content_type="application/octet-stream")


REJECTED: dict[str, Callable[[APIClient], HttpResponseBase]] = {
    "not_found": lambda client: client.get(f"{TASK}order/?role=worker&index=99"),
    "invalid": lambda client: client.get(f"{TASK}order/?role=worker"),
    "unknown_task": lambda client: client.get(f"{TASK}log/?role=worker&index=99&writer=1"),
    "past_the_end": lambda client: sent(client, f"{LOG}&first_line=9&lines=1&writer=1&tail=0"),
    "too_large": lambda client: sent(client, f"{LOG}&first_line=0&lines=1&writer=1&tail=0", b"x" * (1 << 20) + b"\n"),
    "method_not_allowed": lambda client: client.delete(f"{TASK}order/"),
}


@pytest.mark.parametrize("code", REJECTED)
def test_what_the_portal_refuses_a_task_is_its_word(job: Job, code: str) -> None:
    with pytest.raises(PortalRejected) as raised:
        understood(REJECTED[code](task_of(job)))
    assert raised.value.answer["code"] == code


def test_what_it_takes_is_understood(job: Job) -> None:
    assert understood(sent(task_of(job), f"{LOG}&first_line=0&lines=1&writer=1&tail=0")) == {"next_line": 1}
    assert understood(sent(task_of(job), f"{TASK}log/end/?role=worker&index=0&lines=1", b"")) == {"next_line": 1}
    report = {"role": "worker", "index": 0, "restart": 0, "state": "running"}
    answer = understood(task_of(job).post(f"{TASK}report/", report))
    assert answer == {"stop": False, "watched": False, "followed": False, "shells": [], "release": False, "stacks": 0}
    assert "spec" in understood(task_of(job).get(f"{TASK}order/?role=worker&index=0"))


def test_a_forged_token_is_refused_and_an_old_one_told_that_its_attempt_is_over(job: Job) -> None:
    forged = APIClient()
    forged.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(job.pk, 1)}x")
    with pytest.raises(PortalRefused):
        understood(forged.get(f"{TASK}order/?role=worker&index=0"))
    Job.objects.filter(pk=job.pk).update(attempt=2)
    with pytest.raises(PortalRejected) as raised:
        understood(task_of(job).get(f"{TASK}order/?role=worker&index=0"))
    assert raised.value.is_gone


def test_a_host_that_is_not_answered_is_no_word_and_one_line_with_the_setting(job: Job, caplog) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(handler.format(record))  # type: ignore[method-assign]
    handler.addFilter(ClientErrors(60, "INFO"))
    loggers = [logging.getLogger(name) for name in ("django.request", "django.security.DisallowedHost")]
    for one in loggers:
        caplog.set_level(logging.INFO, one.name)
        one.addHandler(handler)
    try:
        answer = task_of(job).get(f"{TASK}order/?role=worker&index=0", HTTP_HOST="portal.example:8080")
        page = APIClient().get("/", HTTP_HOST="portal.example:8080")
    finally:
        for one in loggers:
            one.removeHandler(handler)
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["code"] == "host_refused"
    with pytest.raises(PortalAway):
        understood(answer)
    assert (page.status_code, page.headers["Content-Type"].partition(";")[0]) == (400, "text/html")
    assert len(lines) == 2, lines
    for line in lines:
        assert "portal.example" in line
        assert "YARDMASTER_ALLOWED_HOSTS" in line
        assert "\n" not in line
