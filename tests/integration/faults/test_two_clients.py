"""Two at once: the same request twice, and two people who must not see anything of each other."""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.real.scene import Scene, until
from yardmaster_client import Job, Yardmaster

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(120)]

AT_ONCE = 20
ANY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def http_of(scene: Scene, token: str) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.Client(base_url=scene.portal.url, headers=headers, timeout=60)


# --- the same request ------------------------------------------------------------------------------------------------


def all_at_once(count: int, ask: Any) -> list[Any]:
    """`ask(n)` in that many threads, let go at the same moment."""
    gate, answers = threading.Barrier(count), [None] * count

    def one(number: int) -> None:
        gate.wait()
        answers[number] = ask(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_the_same_key_at_the_same_instant_makes_one_job(portal_scene: Scene):
    spec = portal_scene.spec(portal_scene.put_code({"main.py": "print('once')"}), name="one-key")
    key = {"Idempotency-Key": uuid.uuid4().hex}
    with http_of(portal_scene, portal_scene.token) as http:
        answers = all_at_once(AT_ONCE, lambda _: http.post("/api/v1/jobs/", json={"spec": spec}, headers=key))
        statuses = Counter(answer.status_code for answer in answers)
        assert statuses.keys() <= {201, 409}, statuses
        ids = {answer.json()["id"] for answer in answers if answer.status_code == 201}
        assert len(ids) == 1
        assert all(answer.json()["code"] == "conflict" for answer in answers if answer.status_code == 409)
        again = http.post("/api/v1/jobs/", json={"spec": spec}, headers=key)
        assert (again.status_code, again.json()["id"]) == (201, *ids)
        assert again.headers["Idempotency-Replayed"] == "true"
        other = http.post("/api/v1/jobs/", json={"spec": {**spec, "name": "another"}}, headers=key)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert portal_scene.ask("SELECT COUNT(*) FROM jobs_job WHERE name = 'one-key'") == [(1,)]
    job = portal_scene.settled(portal_scene.client.jobs.get(*ids))
    assert portal_scene.lines(job) == ["once"]


def test_different_keys_at_the_same_instant_make_a_job_each_and_the_quota_holds(portal_scene: Scene):
    """Each asks for the whole quota, so that they can only run one after the other."""
    transport = portal_scene.client.transport
    namespace = next(portal_scene.client.namespaces()).id
    quota = transport.get(f"namespaces/{namespace}/quota/")["hard"]
    transport.put(f"namespaces/{namespace}/quota/", {**quota, "running_jobs": 1})
    try:
        script = (
            "import os, sys, time\nmarks = sys.argv[1]\nos.mkdir(marks + '/runs')\ntime.sleep(0.3)\n"
            "os.rmdir(marks + '/runs')\n"
        )
        marks = portal_scene.traces / uuid.uuid4().hex
        marks.mkdir()
        spec = portal_scene.spec(portal_scene.put_code({"main.py": script}), arguments=[str(marks)], reclaim_delay=0)
        with http_of(portal_scene, portal_scene.token) as http:
            ask = lambda n: http.post("/api/v1/jobs/", json={"spec": {**spec, "name": f"each-{n}"}})  # noqa: E731
            answers = all_at_once(6, ask)
        assert [answer.status_code for answer in answers] == [201] * 6
        for answer in answers:
            job = portal_scene.settled(portal_scene.client.jobs.get(answer.json()["id"]))
            assert job.phase == "SUCCEEDED", "two ran at once: " + job.message
    finally:
        transport.put(f"namespaces/{namespace}/quota/", quota)


# --- two people ------------------------------------------------------------------------------------------------------


class Person:
    """A user with a dataset, code, a job that runs, an upload that is open, and a team."""

    def __init__(self, scene: Scene, name: str, folder: Path) -> None:
        self.scene, self.name = scene, name
        self.token = scene.portal.token_of(name)
        self.client = Yardmaster(scene.portal.url, self.token)
        mine = Scene(scene.portal, self.token)
        mine.client.close()
        mine.client = self.client
        folder.mkdir()
        (folder / "data.txt").write_text(f"{name}'s data")
        self.dataset = self.client.datasets.put(f"{name}-data", [folder])
        self.code = mine.put_code({"main.py": f"import time\nprint('{name}', flush=True)\ntime.sleep(600)\n"})
        post = self.client.transport.post
        self.upload = post("uploads/", {"kind": "code", "files": [{"path": "a.py", "size": 3}]})
        self.team = scene.client.transport.post("namespaces/", {"slug": f"team-{name}", "title": "Team"})
        member = {"username": name, "role": "manager"}
        scene.client.transport.post(f"namespaces/{self.team['id']}/members/", member)
        self.job: Job = self.client.jobs.launch(
            mine.spec(self.code, name=f"{name}-job", inputs=[{"dataset_version": self.dataset.latest.id}])
        )
        until(lambda: mine.portal_has_line(self.job, "worker", 0), what="the job's first line")

    def task_token(self) -> str:
        """The token of the job's tasks, as the engine keeps it."""
        (folder,) = self.scene.run_folders(self.job)
        return (folder / "token").read_text().strip()

    def addresses(self) -> Iterator[tuple[str, str, Any]]:
        """Everything of this person's that has an address."""
        job, upload, data = self.job.id, self.upload["id"], self.dataset
        yield from (("GET", f"jobs/{job}/{part}", None) for part in PARTS_OF_A_JOB)
        yield from (("POST", f"jobs/{job}/{verb}/", None) for verb in ("stop", "retry"))
        yield "DELETE", f"jobs/{job}/", None
        yield "GET", f"datasets/{data.id}/", None
        yield "PATCH", f"datasets/{data.id}/", {"name": "taken"}
        yield "DELETE", f"datasets/{data.id}/", None
        yield "GET", f"datasets/{data.id}/versions/", None
        yield "POST", f"datasets/{data.id}/versions/", {"upload": upload}
        for part in ("", "files/", "files/content/?path=data.txt", "preview/?path=data.txt", "check/"):
            yield "GET", f"dataset-versions/{data.latest.id}/{part}", None
        yield from (("GET", f"code-versions/{self.code}/{part}", None) for part in ("", "files/", "archive/"))
        yield "GET", f"uploads/{upload}/", None
        yield "POST", f"uploads/{upload}/parts/", {"parts": [{"file": 0, "part": 1, "sha256": "0" * 64}]}
        yield "POST", f"uploads/{upload}/complete/", {}
        yield "DELETE", f"uploads/{upload}/", None
        for part in ("", "members/", "quota/"):
            yield "GET", f"namespaces/{self.team['id']}/{part}", None
        yield "PATCH", f"namespaces/{self.team['id']}/", {"title": "taken"}
        yield "GET", f"jobs/?namespace={self.team['id']}", None


PARTS_OF_A_JOB = (
    "", "why/", "attempts/", "events/", "tasks/", "scalars/", "checkpoints/", "model/", "manifests/",
    "logs/", "logs/lines/", "logs/search/?q=a", "logs/raw/",
)  # fmt: skip


@pytest.fixture(scope="module")
def people(_shared_scene: Scene, tmp_path_factory) -> Iterator[tuple[Person, Person]]:
    folder = tmp_path_factory.mktemp("people")
    # Names that no id can hold: its digits are hexadecimal.
    ada, bob = (Person(_shared_scene, name, folder / name) for name in ("ada-lovelace", "bob"))
    yield ada, bob
    for person in (ada, bob):
        person.client.jobs.stop(person.job.id)
        person.client.close()


def test_what_is_another_persons_is_nowhere_to_be_found(people):
    ada, bob = people
    with http_of(ada.scene, bob.token) as http:
        for method, path, body in ada.addresses():
            answer = http.request(method, f"/api/v1/{path}", json=body)
            assert answer.status_code == 404, f"{method} {path}: {answer.status_code} {answer.text[:200]}"
            nowhere = http.request(method, f"/api/v1/{ANY_ID.sub(str(uuid.uuid4()), path)}", json=body)
            assert answer.json() == nowhere.json(), f"{method} {path} betrays that there is something"
    with http_of(ada.scene, ada.token) as http:
        for method, path, _ in ada.addresses():
            if method == "GET" and not path.endswith("model/"):
                assert http.get(f"/api/v1/{path}", follow_redirects=True).status_code == 200, path


def test_lists_hold_only_what_is_ones_own(people):
    ada, bob = people
    for mine, other in ((ada, bob), (bob, ada)):
        for path in ("jobs/", "datasets/", "code/", "models/", "namespaces/"):
            assert other.name not in str(list(mine.client.transport.pages(path))), path
        assert [job.id for job in mine.client.jobs.list()] == [mine.job.id]
    usage = ada.client.me()
    assert bob.name not in str(usage)


def test_nobody_launches_with_anothers_code_or_data(people):
    ada, bob = people
    spec = ada.scene.spec(ada.code, inputs=[{"dataset_version": ada.dataset.latest.id}])
    with http_of(ada.scene, bob.token) as http:
        answer = http.post("/api/v1/jobs/", json={"spec": spec})
        assert answer.status_code == 422
        assert {error["field"] for error in answer.json()["errors"]} == {"code", "inputs.0.dataset_version"}
        answer = http.post("/api/v1/jobs/", json={"spec": ada.scene.spec(bob.code), "namespace": ada.team["id"]})
        assert answer.status_code == 404


def test_anothers_log_and_nudges_do_not_open(people):
    ada, bob = people
    address = ada.scene.portal.url.replace("http", "ws", 1)
    for path in (f"/ws/jobs/{ada.job.id}/logs/", f"/ws/jobs/{ada.job.id}/", f"/ws/jobs/?namespace={ada.team['id']}"):
        for token, code in ((bob.token, 4404), ("", 4401), ("ym_nonsense", 4401)):
            headers = {"Authorization": f"Bearer {token}"} if token else {"Origin": ada.scene.portal.url}
            with (
                connect(f"{address}{path}", additional_headers=headers, open_timeout=20) as socket,
                pytest.raises(ConnectionClosed) as closed,
            ):
                socket.recv(timeout=20)
            assert closed.value.rcvd.code == code, f"{path} with {token[:5]!r}"


def test_a_tasks_token_reaches_its_own_job_alone_and_nothing_of_people(people):
    ada, bob = people
    with http_of(ada.scene, bob.task_token()) as http:
        order = http.get("/api/v1/task/order/", params={"role": "worker", "index": 0})
        assert order.json()["job"] == bob.job.id
        for method, path, body in ada.addresses():
            assert http.request(method, f"/api/v1/{path}", json=body).status_code in (401, 403, 404), path
        assert http.get("/api/v1/me/").status_code in (401, 403)
        assert http.get(f"/api/v1/jobs/{bob.job.id}/").status_code in (401, 403)
        path = f"/api/v1/task/uploads/{ada.upload['id']}"
        assert http.get(f"{path}/").status_code == 404
        assert (
            http.post(f"{path}/parts/", json={"parts": [{"file": 0, "part": 1, "sha256": "0" * 64}]}).status_code == 404
        )
        assert http.post(f"{path}/complete/", json={}).status_code == 404
    forged = bob.task_token().replace(bob.job.id.replace("-", ""), ada.job.id.replace("-", ""))
    with http_of(ada.scene, forged) as http:
        assert http.get("/api/v1/task/order/", params={"role": "worker", "index": 0}).status_code == 401
        answer = http.post("/api/v1/task/log/?role=worker&index=0&first_line=1&lines=1", content=b"forged\n")
        assert answer.status_code == 401
    with http_of(ada.scene, ada.token) as http:  # a person is no task
        assert http.get("/api/v1/task/order/", params={"role": "worker", "index": 0}).status_code in (401, 403)
    assert ada.scene.lines(ada.job) == [ada.name]


def test_a_signed_address_opens_what_was_signed_and_nothing_else(people):
    ada, bob = people
    with http_of(ada.scene, bob.token) as http:
        content = f"/api/v1/dataset-versions/{bob.dataset.latest.id}/files/content/?path=data.txt"
        mine = http.get(content).headers["Location"]
    with http_of(ada.scene, "") as stranger:
        assert stranger.get(mine).text == "bob's data"
        theirs = mine.replace(bob.dataset.latest.id, ada.dataset.latest.id)
        assert theirs != mine
        assert stranger.get(theirs).status_code == 403
        parts = urlsplit(mine)
        for path in (parts.path.replace("data.txt", "../../data.txt"), parts.path.replace("data.txt", "%2e%2e/x")):
            assert stranger.get(f"{path}?{parts.query}").status_code in (400, 403, 404)
        assert stranger.get(parts.path).status_code == 403
        assert stranger.put(mine, content=b"x").status_code in (403, 405)
        assert stranger.get(mine).text == "bob's data"
