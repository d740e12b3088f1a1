"""Every disk that the portal writes to runs full: what cannot be done is said, nothing half-made stays, and all goes on
when there is room again.

Each place is a small file system of its own (tmpfs), which only root may mount.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.real.portal import WHOLE
from tests.real.scene import Scene, scene_in, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

MIB = 1 << 20
SIZES = {"": 256 * MIB, "objects": 24 * MIB, "logs": 8 * MIB, "local": 24 * MIB, "traces": MIB}
"""The home itself holds the database, and what the processes note."""


@dataclass(frozen=True)
class Disks:
    """The file systems of a portal's home."""

    home: Path

    @contextlib.contextmanager
    def full(self, name: str, leave: int = 0) -> Iterator[None]:
        """Nothing more can be written there meanwhile, but for `leave` bytes."""
        filler = self.home / name / "filler"
        size = max(0, self.free(name) - leave)
        with filler.open("wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, size)
            with contextlib.suppress(OSError):
                while not leave:
                    file.seek(0, os.SEEK_END)
                    file.write(b"x" * 4096)
            assert self.free(name) <= leave + 4096
        try:
            yield
        finally:
            filler.unlink()

    def free(self, name: str) -> int:
        state = os.statvfs(self.home / name)
        return state.f_bavail * state.f_frsize

    def files(self, name: str) -> dict[str, int]:
        """Every file there, with its size."""
        root = self.home / name
        while True:
            with contextlib.suppress(FileNotFoundError):  # one was removed while it was looked at
                return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


def _mount(place: Path, size: int) -> None:
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True, capture_output=True)


@pytest.fixture(scope="module")
def disks() -> Iterator[Disks]:
    if os.getuid():
        pytest.skip("only root may mount file systems")
    with tempfile.TemporaryDirectory(prefix="yardmaster-disk-") as folder, contextlib.ExitStack() as undo:
        home = Path(folder)
        try:
            for name, size in SIZES.items():
                _mount(home / name, size)
                undo.callback(subprocess.run, ["umount", "-l", home / name], check=False)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no file system can be mounted here: {error}")
        yield Disks(home)


@pytest.fixture(scope="module")
def disk_scene(disks: Disks) -> Iterator[Scene]:
    with scene_in(disks.home) as one:
        yield one


@pytest.fixture(autouse=True)
def _no_process_has_died(disk_scene: Scene) -> Iterator[None]:
    yield
    dead = [name for name in WHOLE if disk_scene.portal.running[name].poll() is not None]
    assert dead == [], disk_scene.portal.log_of(dead[0])[-3000:]


@pytest.fixture
def http(disk_scene: Scene) -> Iterator[httpx2.Client]:
    """Without the SDK's patience."""
    headers = {"Authorization": f"Bearer {disk_scene.token}"}
    with httpx2.Client(base_url=f"{disk_scene.portal.url}/api/v1/", headers=headers, timeout=30) as client:
        yield client


def storage_of(scene: Scene) -> tuple[int, int]:
    """Bytes used and reserved, by the ledger."""
    rows = scene.ask("SELECT used, reserved FROM uploads_storageaccount")
    return rows[0] if rows else (0, 0)


def begin_upload(http: httpx2.Client, size: int) -> tuple[dict[str, Any], str]:
    """An open upload of one file of one part, and the address of that part."""
    upload = http.post("uploads/", json={"kind": "dataset", "files": [{"path": "a.bin", "size": size}]}).json()
    wanted = {"file": 0, "part": 1, "sha256": hashlib.sha256(b"x" * size).hexdigest()}
    parts = http.post(f"uploads/{upload['id']}/parts/", json={"parts": [wanted]}).json()
    return upload, parts["urls"][0]["url"]


def test_an_upload_into_a_full_store_is_refused_and_goes_on_later(disk_scene: Scene, disks: Disks, http):
    size = 6 * MIB
    used, reserved = storage_of(disk_scene)
    upload, address = begin_upload(http, size)
    with disks.full("objects", leave=2 * MIB):
        answer = httpx2.put(address, content=b"x" * size, timeout=30)
        assert answer.status_code == 503
        assert answer.headers["Content-Type"] == "application/problem+json"
        problem = answer.json()
        assert problem["code"] == "storage_full"
        assert "store is full" in problem["detail"]
        assert "Delete data that you no longer need" in problem["remedy"]
        assert http.get(f"uploads/{upload['id']}/").json()["files"][0]["done"] == []
        assert storage_of(disk_scene) == (used, reserved + size)

    assert httpx2.put(address, content=b"x" * size, timeout=30).status_code == 200
    assert http.post(f"uploads/{upload['id']}/complete/", json={}).json()["state"] == "complete"
    dataset = http.post("datasets/", json={"name": "late", "upload": upload["id"]})
    assert dataset.status_code == 201
    assert storage_of(disk_scene) == (used + size, reserved)


def test_an_upload_that_was_given_up_leaves_nothing(disk_scene: Scene, disks: Disks, http):
    before, account = disks.files("objects"), storage_of(disk_scene)
    upload, address = begin_upload(http, 6 * MIB)
    with disks.full("objects", leave=2 * MIB):
        assert httpx2.put(address, content=b"x" * (6 * MIB), timeout=30).status_code == 503
        assert http.delete(f"uploads/{upload['id']}/").status_code == 204
    assert storage_of(disk_scene) == account
    assert disks.files("objects") == before


LINES = "for n in range({lines}):\n    print(n, 'x' * 200, flush=True)\n    time.sleep({pause})\n"
NOTE = "import sys, time\n{body}open(sys.argv[1], 'w').write('end')\n"


def script(lines: int, pause: float) -> str:
    return NOTE.format(body=LINES.format(lines=lines, pause=pause))


def expected(lines: int) -> list[str]:
    return [f"{n} {'x' * 200}" for n in range(lines)]


def test_lines_that_a_full_log_store_does_not_take_arrive_when_there_is_room(disk_scene: Scene, disks: Disks):
    note = disk_scene.traces / "logs-full"
    with disks.full("logs"):
        job = disk_scene.launch(script(500, 0.002), arguments=[str(note)])
        until(note.exists, what="the script's end")
        until(lambda: disk_scene.client.jobs.get(job.id).phase == "RUNNING", what="the job to be running")
        time.sleep(1)
        assert disk_scene.client.jobs.get(job.id).phase == "RUNNING"
        assert disk_scene.lines(job) == []
    job = disk_scene.settled(job)
    assert job.phase == "SUCCEEDED", job.message
    assert disk_scene.lines(job) == expected(500)
    disk_scene.assert_nothing_is_left(job)


def test_a_job_waits_for_room_on_the_engines_disk_and_says_so(disk_scene: Scene, disks: Disks):
    with disks.full("local"):
        job = disk_scene.launch("print('ran')")
        told = until(lambda: _with_reason(disk_scene, job.id), what="the reason")
        assert told.phase == "STARTING"
        assert "is full" in told.message
        assert "Free space there" in told.remedy
        until(lambda: _has_only(disks, "local", {"filler", "changes"}), what="nothing half-made on the disk")
    job = disk_scene.settled(job)
    assert (job.phase, disk_scene.lines(job)) == ("SUCCEEDED", ["ran"])
    disk_scene.assert_nothing_is_left(job)


def _with_reason(scene: Scene, job_id: str):
    job = scene.client.jobs.get(job_id)
    return job if job.reason == "EngineUnavailable" else None


def _has_only(disks: Disks, name: str, files: set[str]) -> bool:
    """At two moments between two tries, so that what one try leaves for the next to remove is seen."""
    for pause in (0.2, 0):
        if not disks.files(name).keys() <= files:
            return False
        time.sleep(pause)
    return True


def test_a_job_whose_disk_runs_full_while_it_runs_ends_well_with_its_whole_log(disk_scene: Scene, disks: Disks):
    note = disk_scene.traces / "local-full"
    job = disk_scene.launch(script(400, 0.005), arguments=[str(note)])
    until(lambda: disk_scene.portal_has_line(job, "worker", 0), what="its first line")
    with disks.full("local"):
        until(note.exists, what="the script's end")
        time.sleep(2)
    job = disk_scene.settled(job)
    assert job.phase == "SUCCEEDED", job.message
    assert disk_scene.lines(job) == expected(400)
    disk_scene.assert_nothing_is_left(job)


@pytest.mark.long
def test_a_job_can_be_stopped_and_removed_on_a_full_disk(disk_scene: Scene, disks: Disks):
    job = disk_scene.launch("import time\nprint('on', flush=True)\ntime.sleep(600)")
    until(lambda: disk_scene.portal_has_line(job, "worker", 0), what="its first line")
    with disks.full("local"):
        disk_scene.client.jobs.stop(job.id)
        job = disk_scene.settled(job)
        assert job.phase == "STOPPED"
        disk_scene.assert_nothing_is_left(job)


def test_a_database_on_a_full_disk_costs_an_answer_and_no_job(disk_scene: Scene, disks: Disks, http):
    note = disk_scene.traces / "home-full"
    code = disk_scene.put_code({"main.py": script(400, 0.005)})
    job = disk_scene.client.jobs.launch(disk_scene.spec(code, arguments=[str(note)]))
    until(lambda: disk_scene.portal_has_line(job, "worker", 0), what="its first line")
    jobs = disk_scene.ask("SELECT COUNT(*) FROM jobs_job")
    _use_the_token_long_ago(disk_scene)
    with disks.full(""):
        answer = until(lambda: _refused(http, disk_scene.spec(code)), what="a refusal")
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == "unavailable"
        assert http.get("jobs/").status_code == 200
        until(note.exists, what="the script's end")
    written = int(disk_scene.ask("SELECT COUNT(*) FROM jobs_job")[0][0]) - int(jobs[0][0])
    job = disk_scene.settled(job)
    assert job.phase == "SUCCEEDED", job.message
    assert disk_scene.lines(job) == expected(400)
    disk_scene.assert_nothing_is_left(job)
    for other in list(disk_scene.client.jobs.list())[:written]:
        disk_scene.settled(other)


def _refused(http: httpx2.Client, spec: dict[str, Any]) -> httpx2.Response | None:
    """The answer to a launch, once the database can no longer grow: what it has of room it uses first."""
    answer = http.post("jobs/", json={"spec": {**spec, "arguments": ["/dev/null"], "name": "n" * 60}})
    assert answer.status_code in (201, 503), answer.text
    return answer if answer.status_code == 503 else None


def _use_the_token_long_ago(scene: Scene) -> None:
    """So that its next use is due to be noted."""
    with contextlib.closing(sqlite3.connect(scene.portal.home / "portal.sqlite3", timeout=30)) as base, base:
        base.execute("UPDATE accounts_personaltoken SET last_used_at = '2026-01-01 00:00:00'")
