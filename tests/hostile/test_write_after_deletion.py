"""A task or an upload that writes on and on while what it belongs to is deleted leaves nothing: no line, no object, no
part, no row, no byte of the quota."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.hostile.conftest import http
from tests.real.files import all_below, content_of, files_below
from tests.real.scene import Scene, scene, until
from yardmaster.ids import short
from yardmaster_client import Job

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

REFUSED = {401, 403, 404, 409, 410}
TOKEN = """
import sys, uuid, django
django.setup()
from apps.jobs.state.task_auth import token_of
print(token_of(uuid.UUID(sys.argv[1]), 1))
"""
TASK = "/api/v1/task/"

Write = Callable[[httpx2.Client, int], httpx2.Response]


@pytest.fixture(scope="module")
def there() -> Iterator[Scene]:
    with scene() as one:
        yield one


def line(client: httpx2.Client, number: int) -> httpx2.Response:
    at = client.get(f"{TASK}log/", params={"role": "worker", "index": 0})
    query = {"role": "worker", "index": 0, "first_line": at.json().get("next_line", 0), "lines": 1, "writer": 0}
    return client.post(f"{TASK}log/", params=query, content=b"late\n")


def report(client: httpx2.Client, number: int) -> httpx2.Response:
    curve = [{"run": "", "tag": "loss", "step": number, "time": 1.0, "value": 0.5}]
    body = {"role": "worker", "index": 0, "restart": 0, "state": "running", "scalars": curve}
    return client.post(f"{TASK}report/", json=body)


def checkpoint(client: httpx2.Client, number: int) -> httpx2.Response:
    """One that is sent whole and completed, then one that is only begun."""
    for step in (2 * number, 2 * number + 1):
        begun = client.post(f"{TASK}checkpoints/", json={"step": step, "files": [{"path": "m.index", "size": 3}]})
        if begun.status_code != 201:
            return begun
        upload = f"{TASK}uploads/{begun.json()['upload']['id']}/"
        wanted = {"file": 0, "part": 1, "sha256": hashlib.sha256(b"abc").hexdigest()}
        signed = client.post(f"{upload}parts/", json={"parts": [wanted]})
        if signed.status_code != 200:
            return signed
        ADDRESSES.append(signed.json()["urls"][0]["url"])
        put(ADDRESSES[-1])
        if step % 2:
            return client.post(f"{upload}complete/", json={})
    raise AssertionError("unreachable")


ADDRESSES: list[str] = []


def put(address: str) -> int:
    return httpx2.put(address, content=b"abc", timeout=60).status_code


class Writer(threading.Thread):
    """Writes on and on; `answers` counts what it was told."""

    def __init__(self, client: httpx2.Client, write: Write) -> None:
        super().__init__()
        self.answers: Counter[int] = Counter()
        self.over = threading.Event()
        self._client, self._write = client, write

    def run(self) -> None:
        number = 0
        while not self.over.is_set():
            number += 1
            answer = self._write(self._client, number)
            self.answers[answer.status_code] += 1

    @property
    def taken(self) -> int:
        return sum(count for status, count in self.answers.items() if status < 300)

    @property
    def refused(self) -> int:
        return sum(count for status, count in self.answers.items() if status in REFUSED)


def account(there: Scene) -> tuple[int, int]:
    """Bytes (used, reserved) of all namespaces."""
    return there.ask("SELECT COALESCE(SUM(used), 0), COALESCE(SUM(reserved), 0) FROM uploads_storageaccount")[0]


def rows_of(there: Scene, job: Job) -> dict[str, int]:
    """In which tables there is anything of the job, but for what it used: that record outlives it."""
    found = {}
    for (table,) in there.ask("SELECT name FROM sqlite_master WHERE type = 'table'"):
        columns = {row[1] for row in there.ask(f"PRAGMA table_info({table})")}
        if "job_id" in columns and table != "jobs_reservation":
            count = there.ask(f"SELECT COUNT(*) FROM {table} WHERE job_id = ?", job.id.replace("-", ""))[0][0]
            found |= {table: count} if count else {}
    return found


def files_of(there: Scene, job: Job) -> list[Path]:
    """What lies in the home under the job's id, or says that it belongs to it; but for the note that it was deleted."""
    home = there.portal.home
    named = [path for path in all_below(home) if job.id in str(path) or short(uuid.UUID(job.id)) in str(path)]
    targets = [path for path in files_below(home / "objects" / "parts") if path.name == "target"]
    parts = [path for path in targets if job.id.encode() in content_of(path)]
    return [path for path in named + parts if path.exists() and ".deleted" not in path.parts]


def test_a_deleted_job_leaves_nothing_though_its_task_writes_on(there: Scene):
    code = there.put_code({"main.py": "print('done')"})
    before = account(there)
    job = there.client.jobs.launch(there.spec(code))
    there.settled(job)
    token = there.portal.script(TOKEN, job.id).strip()
    ADDRESSES.clear()
    with ExitStack() as stack:
        writers = [
            Writer(stack.enter_context(http(there.portal.url, token)), write) for write in (line, report, checkpoint)
        ]
        for writer in writers:
            writer.start()
        try:
            until(lambda: all(writer.taken >= 3 for writer in writers), 120, "each writer to be heard")
            there.client.jobs.delete(job.id)
            until(lambda: all(writer.refused >= 5 for writer in writers), 120, "each writer to be refused")
            until(lambda: {put(one) for one in ADDRESSES[-20:]} == {404}, 60, "its uploads to be discarded")
            key = job.id.replace("-", "")
            until(lambda: not there.ask("SELECT 1 FROM jobs_job WHERE id = ?", key), 120, "the job's row to go")
        finally:
            for writer in writers:
                writer.over.set()
            for writer in writers:
                writer.join()
    for writer in writers:
        assert set(writer.answers) <= {200, 201, 202} | REFUSED, writer.answers
    until(lambda: not there.ask("SELECT 1 FROM uploads_upload WHERE job_id = ?", key), 60, "its uploads to go")
    assert rows_of(there, job) == {}
    assert files_of(there, job) == []
    assert account(there) == before


def test_a_discarded_upload_leaves_nothing_though_its_parts_are_sent_on(there: Scene):
    before = account(there)
    objects = there.portal.home / "objects"
    with http(there.portal.url, there.portal.token_of("mallory")) as client:
        for _ in range(3):
            files = [{"path": f"f{number}", "size": 100_000} for number in range(8)]
            upload = client.post("/api/v1/uploads/", json={"kind": "dataset", "files": files}).json()["id"]
            sha256 = hashlib.sha256(b"x" * 100_000).hexdigest()
            wanted = [{"file": number, "part": 1, "sha256": sha256} for number in range(8)]
            signed = client.post(f"/api/v1/uploads/{upload}/parts/", json={"parts": wanted}).json()["urls"]

            def send(_: httpx2.Client, number: int, signed: list[dict[str, Any]] = signed) -> httpx2.Response:
                return httpx2.put(signed[number % 8]["url"], content=b"x" * 100_000, timeout=60)

            writers = [Writer(client, send) for _ in range(4)]
            for writer in writers:
                writer.start()
            until(lambda w=writers: all(writer.taken >= 3 for writer in w), 60, "parts to arrive")
            assert client.delete(f"/api/v1/uploads/{upload}/").status_code == 204
            until(lambda w=writers: all(writer.refused >= 3 for writer in w), 60, "parts to be refused")
            for writer in writers:
                writer.over.set()
                writer.join()
                assert set(writer.answers) == {200, 404}
    assert sorted(files_below(objects)) == _of_versions(there)
    assert account(there) == before


def _of_versions(there: Scene) -> list[Path]:
    """The objects that belong to uploads that are there."""
    prefixes = [row[0] for row in there.ask("SELECT key_prefix FROM uploads_upload")]
    objects = there.portal.home / "objects"
    return sorted(path for path in files_below(objects) if any(f"/{prefix}/" in str(path) for prefix in prefixes))


def test_a_removed_team_leaves_nothing_though_a_member_begins_uploads(there: Scene):
    with http(there.portal.url, there.token) as staff, http(there.portal.url, there.portal.token_of("eve")) as client:
        team = {"slug": "gone", "title": "Gone", "manager": "eve"}
        made = staff.post("/api/v1/namespaces/", json=team)
        assert made.status_code == 201, made.text

        def begin(client: httpx2.Client, number: int) -> httpx2.Response:
            body = {"kind": "dataset", "namespace": "gone", "files": [{"path": "f", "size": 1}]}
            answer = client.post("/api/v1/uploads/", json=body)
            if answer.status_code == 201 and number % 2:
                client.delete(f"/api/v1/uploads/{answer.json()['id']}/")
            return answer

        writers = [Writer(client, begin) for _ in range(2)]
        for writer in writers:
            writer.start()
        try:
            until(lambda: all(writer.taken >= 2 for writer in writers), 60, "uploads to be begun")
            asked = staff.post(f"/api/v1/namespaces/{made.json()['id']}/removal/", json={"data": "delete"})
            assert asked.status_code < 300, asked.text
            key = made.json()["id"].replace("-", "")
            until(lambda: not there.ask("SELECT 1 FROM namespaces_namespace WHERE id = ?", key), 120, "the team to go")
        finally:
            for writer in writers:
                writer.over.set()
                writer.join()
    assert not there.ask("SELECT 1 FROM uploads_upload WHERE namespace_id = ?", key)
    assert not there.ask("SELECT 1 FROM uploads_storageaccount WHERE namespace_id = ?", key)
