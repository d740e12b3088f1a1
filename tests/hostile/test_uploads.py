"""A member who begins uploads of as many files as one may have, again and again: others are not kept waiting, and the
portal's memory and database stay as they are."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.hostile.conftest import http
from tests.real.scene import Scene, scene, until
from yardmaster_client import NotReachable, PortalError, Yardmaster

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(600)]

MOST_FILES = 20_000
UPLOADS = "/api/v1/uploads/"
MIB = 1 << 20

Tenant = Callable[[str], httpx2.Client]


@pytest.fixture(scope="module")
def narrow() -> Iterator[Scene]:
    """A portal with low limits of open uploads."""
    limits = {"YARDMASTER_OPEN_UPLOADS_PER_NAMESPACE": "3", "YARDMASTER_OPEN_UPLOADS_PER_USER": "4"}
    with scene(("valkey", "web"), limits) as one:
        yield one


def files(count: int, path: str = "train/{:06}.jpeg", **more: Any) -> list[dict[str, Any]]:
    return [{"path": path.format(number), "size": 0, **more} for number in range(count)]


def begin(client: httpx2.Client, listed: list[dict[str, Any]], **more: Any) -> httpx2.Response:
    return client.post(UPLOADS, json={"kind": "dataset", "files": listed, **more})


def rows_of_uploads(there: Scene) -> int:
    """Rows of all tables that uploads and their versions take, but for the notes that a place was removed, which stay
    for a day."""
    tables = [
        name
        for (name,) in there.ask("SELECT name FROM sqlite_master WHERE type = 'table'")
        if name.startswith(("uploads_", "datasets_", "code_")) and name != "uploads_tombstone"
    ]
    return sum(there.ask(f"SELECT COUNT(*) FROM {name}")[0][0] for name in tables)


@contextmanager
def others_launch(there: Scene) -> Iterator[list[float]]:
    """Meanwhile another tenant launches job after job; gives how long each launch took."""
    client = Yardmaster(there.portal.url, there.portal.token_of("alice"))
    spec = there.spec(there.put_code({"main.py": "print('trained')"}))
    took: list[float] = []
    faults: list[BaseException] = []
    over = threading.Event()

    def launch() -> None:
        while not over.is_set():
            begun = time.monotonic()
            try:
                with Yardmaster(there.portal.url, there.token) as staff:
                    staff.jobs.stop(staff.jobs.launch(spec).id)
                    client.jobs.list(limit=1)
            except (PortalError, NotReachable) as error:
                faults.append(error)
                return
            took.append(time.monotonic() - begun)

    thread = threading.Thread(target=launch)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()
        client.close()
    assert not faults
    assert took
    print(f"{len(took)} launches beside it, the slowest took {max(took):.2f} s")


@pytest.mark.long
def test_another_tenant_launches_while_the_largest_lists_of_files_are_begun_and_finished(
    attacked: Scene, tenant: Tenant
):
    mallory = tenant("mallory")
    with others_launch(attacked):
        before, tombstones = rows_of_uploads(attacked), _tombstones(attacked)
        with ThreadPoolExecutor(4) as pool:
            begun = list(pool.map(lambda _: begin(mallory, files(MOST_FILES)).json(), range(6)))
        assert {one["state"] for one in begun} == {"open"}
        assert rows_of_uploads(attacked) - before < (5 + MOST_FILES // 1000) * len(begun)
        first = f"{UPLOADS}{begun[0]['id']}/"
        assert mallory.post(f"{first}complete/", json={}).status_code == 202
        until(lambda: _state(mallory, first) == "complete", 400, "20,000 files to be checked")
        made = mallory.post("/api/v1/datasets/", json={"name": "pictures", "upload": begun[0]["id"]})
        assert made.status_code == 201, made.text
        for one in begun[1:]:
            assert mallory.delete(f"{UPLOADS}{one['id']}/").status_code == 204
    # A worker removes lists of this length.
    until(lambda: rows_of_uploads(attacked) - before < 8 + MOST_FILES // 1000, 60, "the discarded lists to be removed")
    assert _tombstones(attacked) - tombstones <= 2 * len(begun)
    version = made.json()["latest"]
    assert version["files"] == MOST_FILES
    page = mallory.get(f"/api/v1/dataset-versions/{version['id']}/files/").json()
    assert page["results"][0]["path"] == "train/000000.jpeg"
    assert mallory.delete(f"/api/v1/datasets/{made.json()['id']}/").status_code == 204
    # One for the account of the namespace.
    until(lambda: rows_of_uploads(attacked) <= before + 1, 60, "the dataset's list to be removed")


def _tombstones(attacked: Scene) -> int:
    """Of all uploads there were, those of other tests of this portal too."""
    return int(attacked.ask("SELECT COUNT(*) FROM uploads_tombstone")[0][0])


def _state(client: httpx2.Client, address: str) -> str:
    found = client.get(address).json()
    assert not found["problem"], found["problem"]
    return str(found["state"])


@pytest.mark.parametrize(
    ("what", "status"),
    [("files", 201), ("lists", 400), ("text", 400), ("depth", 400)],
)
@pytest.mark.long
def test_eight_of_the_largest_requests_at_once_cost_little_memory(
    attacked: Scene, tenant: Tenant, what: str, status: int
):
    mallory = tenant("mallory")
    mallory.get("/api/v1/auth/me/")
    listed = files(MOST_FILES, "x" * 200 + "/" + "y" * 200 + "{:06}", sha256="0" * 64)
    body = {
        "files": json.dumps({"kind": "dataset", "files": listed}).encode(),
        "lists": b'{"kind":"dataset","files":[' + b"[]," * (5 * MIB) + b"[]]}",
        "text": b'{"kind":"dataset","files":"' + b"x" * (15 * MIB) + b'"}',
        "depth": b'{"kind":"dataset","files":' + b"[" * (15 * MIB),
    }[what]
    assert 8 * MIB < len(body) < 16 * MIB
    before = _peak(attacked, forget=True)
    with ThreadPoolExecutor(8) as pool:
        sent = {"content": body, "headers": {"Content-Type": "application/json"}}
        answers = list(pool.map(lambda _: mallory.post(UPLOADS, **sent), range(8)))
    more = _peak(attacked) - before
    print(f"{what}: {more / MIB:.0f} MiB more for eight requests of {len(body) / MIB:.1f} MiB each")
    assert {one.status_code for one in answers} == {status}
    for one in answers:
        if one.status_code == 201:
            mallory.delete(f"{UPLOADS}{one.json()['id']}/")
    assert more < 400 * MIB


def _peak(there: Scene, *, forget: bool = False) -> int:
    """The most memory that the web process ever held; `forget`: from now on."""
    process = Path(f"/proc/{there.portal.running['web'].pid}")
    if forget:
        (process / "clear_refs").write_text("5")
    line = next(one for one in (process / "status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def test_open_uploads_are_limited_by_namespace_and_user_however_many_are_begun_at_once(narrow: Scene):
    with http(narrow.portal.url, narrow.portal.token_of("mallory")) as mallory:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: begin(mallory, files(1)), range(16)))
        assert sorted(one.status_code for one in answers) == [201] * 3 + [409] * 13
        refused = next(one.json() for one in answers if one.status_code == 409)
        assert refused["code"] == "too_many_open_uploads"
        assert "3 open uploads" in refused["detail"]
        assert refused["remedy"]
        # The user's own limit counts over all namespaces.
        with http(narrow.portal.url, narrow.token) as staff:
            team = {"slug": "team", "title": "Team", "manager": "mallory"}
            assert staff.post("/api/v1/namespaces/", json=team).status_code == 201
        assert begin(mallory, files(1), namespace="team").status_code == 201
        answer = begin(mallory, files(1), namespace="team")
        assert (answer.status_code, answer.json()["code"]) == (409, "too_many_open_uploads")
        assert answer.json()["detail"].startswith("You have 4")
        # What is finished or discarded makes room.
        first = next(one.json() for one in answers if one.status_code == 201)
        assert mallory.delete(f"{UPLOADS}{first['id']}/").status_code == 204
        assert begin(mallory, files(1)).status_code == 201
