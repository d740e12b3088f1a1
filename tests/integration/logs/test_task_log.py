"""What a task's runner may rely on when it writes its log."""

from __future__ import annotations

import errno
import gzip
import zlib

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.jobs.models import Job, JobAttempt
from apps.jobs.state import log_charges
from apps.jobs.state.task_auth import token_of
from apps.logs import intake
from apps.namespaces.models import Quota
from apps.uploads.models import StorageAccount
from tests.integration.logs.conftest import job_of, worker

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/task/log/?role=worker&index=0"
GAP = "/api/v1/task/log/gap/?role=worker&index=0"


def write(client: APIClient, data: bytes, *, first: int = 0, lines: int | None = None, **headers: str):
    count = data.count(b"\n") if lines is None else lines
    return client.post(
        f"{ADDRESS}&first_line={first}&lines={count}", data, content_type="application/octet-stream", headers=headers
    )


def test_lines_are_kept_with_their_times(job, task, store):
    answer = write(task(job), b"a\n\xff\nc\n", **{"X-Times": "0:1000,2:3000"})
    assert answer.status_code == 200
    assert answer.json() == {"next_line": 3}
    assert [tuple(line) for line in store.read(worker(job), 0, 10).lines] == [
        (0, 1000, b"a"),
        (1, 1000, b"\xff"),
        (2, 3000, b"c"),
    ]


def test_a_repeat_changes_nothing_and_past_the_end_says_where_to_go_on(job, task, store):
    client = task(job)
    write(client, b"a\nb\n")
    assert write(client, b"a\nb\n").json() == {"next_line": 2}
    refused = write(client, b"d\n", first=3)
    assert refused.status_code == 409
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert (refused.json()["code"], refused.json()["next_line"]) == ("past_the_end", 2)
    assert client.get(ADDRESS).json() == {"next_line": 2, "mine": None}


def test_a_writer_is_told_where_its_own_lines_end(job, task, store):
    client = task(job)
    for writer, first in ((1, 0), (2, 2)):
        query = f"{ADDRESS}&first_line={first}&lines=2&writer={writer}"
        assert client.post(query, b"a\nb\n", content_type="application/octet-stream").status_code == 200
    gap = client.post(f"{GAP}&first_line=1&writer=1", {"lines": 2, "bytes": 5})
    assert (gap.status_code, gap.json()["code"]) == (409, "written_by_another")
    found = [client.get(f"{ADDRESS}&writer={writer}").json() for writer in (1, 2, 3)]
    assert found == [{"next_line": 4, "mine": mine} for mine in (2, 4, None)]


def test_gzip_is_taken(job, task, store):
    data = b"line\n" * 200_000
    squeezed = gzip.compress(data, mtime=0)
    assert write(task(job), squeezed, lines=200_000, **{"Content-Encoding": "gzip"}).status_code == 200
    assert b"".join(store.raw(worker(job))) == data


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"x" * 100 + b"\n", {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b"a\n", mtime=0)[:-4], {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b"a\n", mtime=0) + b"more", {"Content-Encoding": "gzip"}, 400),
        (zlib.compress(b"a\n"), {"Content-Encoding": "deflate"}, 400),
        (b"no newline", {}, 400),
        (b"a\n", {"X-Times": "now"}, 400),
        (b"a\n", {"X-Times": "0:1,0:2"}, 400),
        (b"a\n", {"X-Times": ",".join(f"{n}:1" for n in range(intake.MOST_MARKS + 1))}, 400),
        (b"a\n" * (1 << 19) + b"\n", {}, 413),
        (b"x" * intake.LONGEST_LINE + b"x\n", {}, 413),
    ],
)
def test_what_is_not_whole_lines_is_refused_and_changes_nothing(job, task, store, body, headers, status):
    answer = write(task(job), body, lines=1, **headers)
    assert answer.status_code == status
    assert answer.json()["detail"]
    assert store.next_line(worker(job)) == 0


def test_a_gzip_bomb_is_refused_before_it_fills_memory(job, task, store):
    bomb = gzip.compress(bytes(200 << 20))
    assert len(bomb) < intake.MOST_BYTES
    assert write(task(job), bomb, lines=1, **{"Content-Encoding": "gzip"}).status_code == 413


@pytest.mark.parametrize(
    "query",
    ["role=worker", "role=boss&index=0", "role=worker&index=-1", "role=worker&index=0&first_line=x&lines=1"],
)
def test_a_wrong_address_is_explained(job, task, query):
    answer = task(job).post(f"/api/v1/task/log/?{query}", b"a\n", content_type="application/octet-stream")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"]


def test_lines_that_are_lost_are_marked_and_counted(job, task, store):
    client = task(job)
    write(client, b"a\n")
    gap = client.post(f"{GAP}&first_line=1", {"lines": 9, "bytes": 500})
    assert gap.json() == {"next_line": 10}
    assert write(client, b"b\n", first=10).json() == {"next_line": 11}
    assert [(gap.first_line, gap.lines, gap.dropped_bytes) for gap in store.streams(job.pk)[0].gaps] == [(1, 9, 500)]


def test_a_task_says_that_it_has_ended(job, task, store):
    client = task(job)
    write(client, b"a\n")
    assert client.post("/api/v1/task/log/end/?role=worker&index=0&lines=1").json() == {"next_line": 1}
    assert store.head(worker(job)).ended
    assert client.post("/api/v1/task/log/end/?role=worker&index=0&lines=5").status_code == 409


def test_nobody_else_s_token_writes_here(job, bob, task, signed_in, with_token, store):
    other = job_of(bob)
    write(task(other), b"mine\n")
    assert store.next_line(worker(job)) == 0
    assert store.next_line(worker(other)) == 1
    for client in (APIClient(), signed_in(bob), with_token(bob)):
        assert write(client, b"a\n").status_code in (401, 403)
    forged = APIClient()
    forged.credentials(HTTP_AUTHORIZATION=f"Bearer ymt.{job.pk.hex}.1.{'0' * 64}")
    assert write(forged, b"a\n").status_code == 401


def test_an_outlived_token_is_refused(job, task):
    JobAttempt.objects.filter(job=job).update(cleaned_up_at=timezone.now() - timezone.timedelta(hours=1))
    assert write(task(job), b"a\n").status_code == 401


def test_a_known_token_costs_no_query(job, task, django_assert_num_queries):
    client = task(job)
    write(client, b"a\n")
    with django_assert_num_queries(0):
        assert write(client, b"b\n", first=1).status_code == 200


def test_a_full_disk_is_503_and_nothing_is_acknowledged(job, task, store, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    client = task(job)
    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        answer = write(client, b"a\n")
    assert answer.status_code == 503
    assert "disk space" in answer.json()["remedy"]
    assert write(client, b"a\n").json() == {"next_line": 1}


# --- how much ------------------------------------------------------------------------------------------------------


def charged_for(job) -> tuple[int, int]:
    """(bytes that the attempt is charged for, bytes of logs on the namespace's account)."""
    account = StorageAccount.objects.filter(namespace=job.namespace).first()
    attempt = JobAttempt.objects.get(job=job)
    assert account is None or account.used >= account.logs
    return attempt.log_bytes, account.logs if account else 0


@pytest.mark.parametrize("task_of_none", ["role=worker&index=4", "role=ps&index=9999", "role=evaluator&index=0"])
def test_a_task_that_the_job_does_not_have_is_refused(job, task, store, task_of_none):
    client = task(job)
    for path, body in (("", b""), ("gap/", {"lines": 1, "bytes": 1}), ("end/", None)):
        content = {"content_type": "application/octet-stream"} if path == "" else {"format": "json"}
        answer = client.post(f"/api/v1/task/log/{path}?{task_of_none}&first_line=0&lines=0", body, **content)
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_task")
    assert client.get(f"/api/v1/task/log/?{task_of_none}").status_code == 404
    assert store.keys(job.pk) == []


def test_the_namespace_is_charged_in_portions_and_settled_at_the_end(job, task, store):
    client, line = task(job), b"x" * 99 + b"\n"
    for number in range(30):
        write(client, line * 1000, first=number * 1000)
    attempt, logs = charged_for(job)
    assert attempt == logs >= 3_000_000
    assert logs <= 8 << 20
    log_charges.log_settle(job.pk, 1)
    log_charges.log_settle(job.pk, 1)
    used = store.volume(job.pk, 1).used
    assert charged_for(job) == (used, used)
    assert 3_000_000 <= used < 3_100_000
    store.delete_job(job.pk)
    log_charges.log_release(job.pk, job.namespace_id)
    log_charges.log_release(job.pk, job.namespace_id)
    assert charged_for(job) == (0, 0)


def test_a_write_after_the_job_s_deletion_leaves_nothing(job, task, store):
    client = task(job)
    write(client, b"a\n")
    store.delete_job(job.pk)
    Job.objects.filter(pk=job.pk).update(deleted_at=timezone.now())
    assert write(client, b"b\n", first=0).status_code == 404
    assert store.keys(job.pk) == []


def test_a_full_quota_drops_lines_and_says_so(job, task, store):
    Quota.objects.update_or_create(namespace=job.namespace, defaults={"storage": 1 << 20})
    client, line = task(job), b"x" * 1023 + b"\n"
    answers = [write(client, line * 500, first=number * 500).json() for number in range(4)]
    assert [answer["next_line"] for answer in answers] == [500, 1000, 1500, 2000]
    assert "full" not in answers[1]
    assert answers[-1]["full"]["cause"] == "storage_quota"
    (gap,) = store.streams(job.pk)[0].gaps
    assert (gap.first_line, gap.lines) == (1000, 1000)
    assert charged_for(job)[1] <= 1 << 20


def test_lines_of_a_runner_that_does_not_look_for_its_token_are_kept_without_it(job, task, store):
    client, data = task(job), f"Bearer {token_of(job.pk, 1)}\nx\n".encode()
    assert write(client, data).json() == {"next_line": 2}
    assert [line[2] for line in store.read(worker(job), 0, 10).lines] == [b"Bearer [task token]", b"x"]
