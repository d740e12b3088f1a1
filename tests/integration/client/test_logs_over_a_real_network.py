"""Writing, following and reading logs through a real web process that is killed and started again."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
import uuid

import pytest

from tests.real.portal import RealPortal
from yardmaster_client import LogLine, PortalError, Yardmaster
from yardmaster_client.follow import OpenLine
from yardmaster_client.signed import Passing

pytestmark = pytest.mark.slow

_MAKE_JOBS = """
import json, django
django.setup()
from django.utils import timezone
from apps.accounts.models import User
from apps.jobs.models import Job, JobAttempt
from apps.jobs.state.task_auth import token_of
from apps.namespaces.selectors import namespace_for
user, now = User.objects.get(username="ada"), timezone.now()
found = []
for _ in range(10):
    job = Job.objects.create(namespace=namespace_for(user, None), owner=user, name="logged", engine="local",
        strategy="single", spec={"roles": {}}, needs={}, queued_at=now)
    JobAttempt.objects.create(job=job, number=1, spec={"roles": {"worker": {"replicas": 1}}}, queued_at=now)
    found.append([str(job.pk), token_of(job.pk, 1)])
print(json.dumps(found))
"""
_END_JOB = """
import sys, django
django.setup()
from django.utils import timezone
from apps.jobs.models import Job, JobAttempt
JobAttempt.objects.filter(job=sys.argv[1]).update(cleaned_up_at=timezone.now())
Job.objects.filter(pk=sys.argv[1]).update(cleaned_up_at=timezone.now(), phase="SUCCEEDED")
"""


class Task:
    """A runner in a few lines: sends numbered lines, again and again until they are acknowledged."""

    def __init__(self, portal: RealPortal, job: str, token: str) -> None:
        self.portal, self.job, self.token = portal, job, token
        self.next_line = 0

    def write(self, lines: int) -> None:
        data = b"".join(b"line %d\n" % number for number in range(self.next_line, self.next_line + lines))
        query = f"first_line={self.next_line}&lines={lines}"
        self.next_line = self._post(f"?role=worker&index=0&{query}", data)

    def end(self) -> None:
        self._post(f"end/?role=worker&index=0&lines={self.next_line}", b"")

    def show(self, line: int, text: str) -> None:
        address = f"{self.portal.url}/api/v1/task/log/open/?role=worker&index=0&line={line}"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(address, json.dumps({"text": text}).encode(), headers, method="POST")
        urllib.request.urlopen(request, timeout=10).close()

    def _post(self, path: str, data: bytes) -> int:
        headers = {"Authorization": f"Bearer {self.token}", "X-Times": f"0:{time.time_ns() // 1_000_000}"}
        request = urllib.request.Request(f"{self.portal.url}/api/v1/task/log/{path}", data, headers, method="POST")
        for _ in range(200):
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return json.load(answer)["next_line"]
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError("the portal took no line")


@pytest.fixture(scope="module")
def jobs(light_portal: RealPortal, ada: Yardmaster) -> list[tuple[str, str]]:
    """Jobs that no engine runs, each with its task's token: made at once, since a script takes seconds to start."""
    return [(job, token) for job, token in json.loads(light_portal.script(_MAKE_JOBS).splitlines()[-1])]


@pytest.fixture
def task(light_portal: RealPortal, jobs: list[tuple[str, str]]) -> Task:
    return Task(light_portal, *jobs.pop())


def test_kill_9_of_the_portal_loses_and_doubles_no_line_for_writer_and_follower(task, ada, light_portal):
    seen: list[int] = []

    def follow() -> None:
        seen.extend(
            line.number for line in ada.jobs.follow(task.job, role="worker", index=0) if isinstance(line, LogLine)
        )

    follower = threading.Thread(target=follow)
    follower.start()
    writer = threading.Thread(target=lambda: [task.write(37) for _ in range(60) if not time.sleep(0.05)])
    writer.start()
    for _ in range(2):
        time.sleep(0.6)
        light_portal.kill("web")
        light_portal.start("web")
    writer.join()
    task.end()
    light_portal.script(_END_JOB, task.job)
    follower.join(60)
    assert not follower.is_alive()
    assert seen == list(range(60 * 37))


def test_a_new_line_is_told_and_not_found_by_looking(task, ada):
    """The nudge goes through the message server: a line is seen long before the next look, which is a second away."""
    task.write(1)
    delays: list[float] = []
    lines = ada.jobs.follow(task.job)
    next(lines)
    for _ in range(5):
        time.sleep(0.3)
        begun = time.monotonic()
        task.write(1)
        next(lines)
        delays.append(time.monotonic() - begun)
    lines.close()
    assert min(delays) < 0.5, delays  # none would be: the next look is 0.7 s away


def test_a_line_that_is_not_finished_is_shown_to_who_follows(task, ada):
    task.write(1)
    shown: list[OpenLine] = []
    lines = ada.jobs.follow(task.job, on_open=shown.append)
    assert next(lines).number == 0

    def tell() -> None:
        while not shown:
            task.show(1, "50%")
            time.sleep(0.1)
        task.write(1)

    teller = threading.Thread(target=tell)
    teller.start()
    assert next(lines).number == 1
    teller.join()
    assert shown[0] == OpenLine("worker", 0, 1, "50%")
    lines.close()


def test_following_ends_by_itself_when_the_attempt_is_over(task, ada, light_portal):
    task.write(10)
    task.end()
    light_portal.script(_END_JOB, task.job)
    assert [line.number for line in ada.jobs.follow(task.job)] == list(range(10))
    assert [line.number for line in ada.jobs.follow(task.job, start=-3)] == [7, 8, 9]


def test_an_unknown_job_cannot_be_followed(ada):
    with pytest.raises(PortalError) as caught:
        next(ada.jobs.follow(str(uuid.uuid4())))
    assert caught.value.status == 404


def test_a_token_that_is_none_cannot_follow(task, light_portal):
    with Yardmaster(light_portal.url, "x" * 64) as stranger, pytest.raises(PortalError) as caught:
        next(stranger.jobs.follow(task.job))
    assert caught.value.status == 401


def test_lines_are_read_and_searched(task, ada, yardmaster):
    task.write(25)
    assert [line.number for line in ada.jobs.lines(task.job)] == list(range(25))
    assert [line.number for line in ada.jobs.lines(task.job, role="worker", start=-2)] == [23, 24]
    assert [line.number for line in ada.jobs.search(task.job, "LINE 2")] == [2, 20, 21, 22, 23, 24]
    assert yardmaster("jobs", "logs", task.job, "--role", "worker", "--from", "23").out == "line 23\nline 24\n"
    assert yardmaster("jobs", "logs", task.job, "--grep", "e 1$", "--regex").out == "worker-0 | line 1\n"
    assert json.loads(yardmaster("jobs", "logs", task.job, "--from", "-1", "--json").out)["text"] == "line 24"


def test_the_whole_log_is_downloaded(task, ada):
    task.write(1000)
    data = bytearray()
    ada.transport.download(f"jobs/{task.job}/logs/raw/", Passing(data.extend), role="worker", index=0)
    assert bytes(data) == b"".join(b"line %d\n" % number for number in range(1000))
