"""Signed addresses are credentials: none stands in anything that is written, whatever fails, and none lives longer than
a quarter of an hour, whatever is asked for. The main road over both stores, with the most that can be logged.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import httpx2
import pytest
import urllib3

from tests.hostile.conftest import http, in_browser
from tests.hostile.written import LONGEST_LIFE, Written, lives
from tests.integration.reading.prepared import write
from tests.real.doubling import EXPORT
from tests.real.files import files_below
from tests.real.object_stores import KEYS, minio
from tests.real.portal import ROOT
from tests.real.scene import Scene, scene, until
from tests.real.store_in_front import HANGS_UP, StoreInFront, store_in_front
from yardmaster.storage.s3 import S3Storage
from yardmaster_client import Dataset, Job

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.s3, pytest.mark.tensorflow, pytest.mark.timeout(600)]

MIB = 1 << 20
LOUD = {
    "YARDMASTER_LOG_LEVEL": "DEBUG", "YARDMASTER_LOG_REQUESTS": "1", "YARDMASTER_LOG_CLIENT_ERRORS": "65535",
    "YARDMASTER_BUCKET_ENDPOINTS": "",
}  # fmt: skip
LOUD_COMMAND = """
import logging, sys
from yardmaster_client.cli.main import run
logging.basicConfig(level="DEBUG")
sys.exit(run(sys.argv[1:]))
"""
READS = """
import os, pathlib, time
from yardmaster_runner.data.inputs import find
from yardmaster_runner.data.passes import fetched, listed

print("copied", sorted(os.listdir(find("copied").folder)), sorted(os.listdir(find("theirs").folder)))
streamed = find("streamed")
for path, size in listed(streamed):
    connection, place = fetched(streamed, path)
    assert os.path.getsize(place) == size
    connection.close()
log, model = pathlib.Path(os.environ["LOG_DIR"]), pathlib.Path(os.environ["MODEL_DIR"])
for name in ("index", "data-00000-of-00001", "meta"):
    (log / f"model.ckpt-20.{name}").write_text("of step 20")
(log / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-20"')
(log / "table.csv").write_text("a,b")
model.mkdir(parents=True, exist_ok=True)
(model / "saved_model.pb").write_bytes(os.urandom(9 << 20))
print("streamed all", flush=True)
"""


class Road:
    """A portal over one of the stores, what was written on the way, and the addresses that were handed out."""

    def __init__(self, one: Scene, front: StoreInFront, is_s3: bool, folder: Path) -> None:
        self.scene, self.front, self.is_s3, self.folder = one, front, is_s3, folder
        self.written = Written(one.portal.home)
        self.addresses: list[str] = []
        self.forged: set[str] = set()
        """Addresses that a test has changed, and that are refused."""

    def command(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """The command line, with everything that its libraries have to say."""
        told = {"YARDMASTER_URL": self.scene.portal.url, "YARDMASTER_TOKEN": self.scene.token}
        done = subprocess.run(
            [sys.executable, "-c", LOUD_COMMAND, *words], cwd=ROOT, env={**self.scene.portal.environment, **told},
            input=given, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.written.add(f"yardmaster {' '.join(words)}", done.stdout + done.stderr)
        return done

    def did(self, *words: str, given: str = "") -> str:
        done = self.command(*words, given=given)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def api(self, path: str, client: httpx2.Client | None = None, **body: Any) -> Any:
        """An answer of the API, with the addresses in it kept. GET without a body."""
        with ExitStack() as stack:
            one = client or stack.enter_context(http(self.scene.portal.url, self.scene.token))
            answer = one.post(f"/api/v1/{path}", json=body) if body else one.get(f"/api/v1/{path}")
        where = answer.headers.get("Location", "")
        found = answer.json() if answer.headers.get("Content-Type", "").startswith("application/json") else where
        self.addresses += [text for text in _texts([found, where]) if lives(text) is not None]
        return found

    def version_of(self, dataset: str) -> str:
        latest = _found(self, dataset).latest
        assert latest is not None
        return latest.id

    def ended(self, job: Job) -> Job:
        ended = self.scene.ended(job, 200)
        self.written.add(f"the log of {job.name}", "\n".join(self.scene.lines(ended)))
        return ended


def _found(road: Road, dataset: str) -> Dataset:
    found = road.scene.client.datasets.find(dataset)
    assert found is not None
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
    elif isinstance(value, str):
        yield value


@pytest.fixture(scope="module", params=["a folder", pytest.param("MinIO", marks=pytest.mark.long)])
def road(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Road]:
    folder, is_s3 = tmp_path_factory.mktemp("road"), request.param == "MinIO"
    with minio(folder / "minio") as server, store_in_front(server.url) as front:
        keys = {"YARDMASTER_S3_ACCESS_KEY": KEYS[0], "YARDMASTER_S3_SECRET_KEY": KEYS[1]}
        settings = {"YARDMASTER_S3_ENDPOINT": front.url, **keys} if is_s3 else {}
        with scene(settings={**LOUD, **settings}) as one:
            one.portal.manage("prepare")
            made = Road(one, front, is_s3, folder)
            with made.written.watched():
                _go(made)
                asked = {f"{front.url}{target}" for _, target in front.asked if lives(target) is not None}
                made.addresses += sorted(asked - made.forged)
            made.written.add("what MinIO says", (folder / "minio" / "minio.log").read_text(errors="replace"))
            yield made


def _go(road: Road) -> None:
    data = road.folder / "data"
    data.mkdir()
    (data / "large.bin").write_bytes(os.urandom(20 * MIB))  # three parts
    (data / "größe, a+b&c.csv").write_bytes(b"a,b\n1,2\n")
    road.did("datasets", "upload", str(data), "--name", "raw", "--json")
    road.did("datasets", "upload", str(write(road.folder / "prepared")), "--name", "shards")
    road.did("datasets", "download", "raw", "--to", str(road.folder / "back"))
    _as_a_browser(road)
    _register(road)
    code = road.scene.put_code({"main.py": READS})
    job = _launch(road, code)
    assert road.ended(job).phase == "SUCCEEDED", (road.scene.lines(job), job.message)
    _ask_for_everything(road, road.scene.client.jobs.get(job.id))
    _troubles_of_addresses(road)
    _in_trouble(road, code) if road.is_s3 else _damaged(road, code)
    _served(road)


def _as_a_browser(road: Road) -> None:
    content = b"sent by a page"
    with in_browser(road.scene.portal.url, "admin") as page:
        files = [{"path": "by/hand.txt", "size": len(content)}]
        upload = road.api("uploads/", page, kind="dataset", files=files)
        parts = [{"file": 0, "part": 1, "sha256": hashlib.sha256(content).hexdigest()}]
        [signed] = road.api(f"uploads/{upload['id']}/parts/", page, parts=parts)["urls"]
        assert _sent("PUT", signed["url"], content, signed["headers"]) == 200
        page.post(f"/api/v1/uploads/{upload['id']}/complete/", json={}).raise_for_status()
        road.api("datasets/", page, name="by hand", upload=upload["id"])
        page.get("/datasets/")
    wrong = {"parts": [parts[0] | {"part": 7}]}
    road.api(f"uploads/{upload['id']}/parts/", **wrong)


def _sent(method: str, url: str, body: bytes = b"", headers: dict[str, str] | None = None) -> int:
    return urllib3.request(method, url, body=body, headers=headers or {}, retries=False).status


def _register(road: Road) -> None:
    theirs = S3Storage(road.front.url, "theirs", *KEYS)
    theirs.prepare()
    theirs.put("data/first.txt", b"first")
    road.did("secrets", "set", "KEYS", "--bucket-keys", given="\n".join(KEYS) + "\n")
    words = ("datasets", "register", "s3://theirs/data", "--name", "theirs", "--secret", "KEYS")
    road.did(*words, "--endpoint", road.front.url)
    until(lambda: (found := road.scene.client.datasets.find("theirs")) and found.latest, what="the scan")
    road.did("datasets", "download", "theirs", "--to", str(road.folder / "theirs"))


def _launch(road: Road, code: str, name: str = "reads") -> Job:
    inputs = [
        {"dataset_version": road.version_of("raw"), "name": "copied"},
        {"dataset_version": road.version_of("theirs"), "name": "theirs"},
        {"dataset_version": road.version_of("shards"), "name": "streamed", "mode": "stream"},
    ]
    return road.scene.client.jobs.launch(road.scene.spec(code, name=name, inputs=inputs))


def _ask_for_everything(road: Road, job: Job) -> None:
    """Every answer that has addresses, also by who asks for a longer life."""
    road.did("jobs", "outputs", job.id, "--download", str(road.folder / "outputs"))
    road.did("models", "download", "reads", "--to", str(road.folder / "model"))
    longer = "expires=604800&expires_in=604800&life=604800&X-Amz-Expires=604800"
    paths = [f"jobs/{job.id}/model/"]
    for dataset, file in (("raw", "large.bin"), ("theirs", "first.txt")):
        files = f"dataset-versions/{road.version_of(dataset)}/files/"
        paths += [f"{files}?addresses=1", f"{files}content/?path={file}"]
    outputs = road.api(f"jobs/{job.id}/outputs/")["results"]
    paths += [f"jobs/{job.id}/outputs/content/?path={one['path']}" for one in outputs]
    for path in paths:
        road.api(path)
        road.api(f"{path}{'&' if '?' in path else '?'}{longer}")


def _troubles_of_addresses(road: Road) -> None:
    """What is refused: an address of a longer life, one that has expired, another method, one for other bytes."""
    for address in [one for one in road.addresses if one.startswith("http")][-40:]:
        parts = urlsplit(address)
        name = "X-Amz-Expires" if "X-Amz-Expires" in parts.query else "expires"
        [now] = parse_qs(parts.query)[name]
        method = "PUT" if "/storage/parts/" in address or "checksum" in parts.query else "GET"
        for other in ("1", str(int(now) + 60)):
            forged = urlunsplit(parts._replace(query=parts.query.replace(f"{name}={now}", f"{name}={other}")))
            road.forged.add(forged)
            assert _sent(method, forged) in (400, 403), "a changed address works"
        assert _sent("PUT", address, b"other bytes") >= 400
        assert _sent("DELETE", address) >= 400


def _in_trouble(road: Road, code: str) -> None:
    """The S3 server answers 503, says that addresses have expired, or hangs up, to each who uses it."""
    new = road.folder / "new"
    new.mkdir()
    (new / "new.bin").write_bytes(os.urandom(9 * MIB))
    commands = (
        ("datasets", "upload", str(new), "--name", "fails"),
        ("datasets", "download", "raw", "--to", str(road.folder / "no")),
        ("datasets", "check", "raw"),
    )
    theirs = _found(road, "theirs").id
    for status in (503, 403, HANGS_UP):
        with road.front.in_trouble(status), ThreadPoolExecutor(len(commands)) as pool:
            road.api(f"datasets/{theirs}/rescan/", secret="KEYS")
            done = list(pool.map(lambda words: road.command(*words), commands))
            assert all(one.returncode for one in done), [one.stderr[-500:] for one in done]
    for status in (503, HANGS_UP):
        _troubled_job(road, code, status)


def _troubled_job(road: Road, code: str, status: int) -> None:
    """The trouble meets a task that fetches what it reads, and then that sends what it has made."""
    with road.front.in_trouble(status, "GET", "HEAD", besides="/code/"):  # which a launch reads
        job = _launch(road, code, f"troubled-{status}")
        _wait_for_more(road.front, 8)
        road.front.methods, road.front.besides = ("PUT",), ""  # without a moment in which all of it could pass
        _wait_for_more(road.front, 3)
    assert road.ended(job).phase == "SUCCEEDED"


def _wait_for_more(front: StoreInFront, count: int) -> None:
    before = front.met
    until(lambda: front.met >= before + count, what="requests that meet the trouble")


def _damaged(road: Road, code: str) -> None:
    """A file of the folder is not what it was: the job that reads it fails, and so do a download and a check."""
    [file] = [one for one in files_below(road.scene.portal.home / "objects") if one.name.endswith("large.bin")]
    file.chmod(0o640)
    file.write_bytes(b"other bytes")
    failed = road.ended(_launch(road, code, "fails"))
    assert (failed.phase, failed.reason) == ("FAILED", "CorruptInput")
    assert road.command("datasets", "download", "raw", "--to", str(road.folder / "no")).returncode != 0
    assert road.command("datasets", "check", "raw").returncode != 0
    file.unlink()
    assert road.command("datasets", "download", "raw", "--to", str(road.folder / "no")).returncode != 0


def _served(road: Road) -> None:
    roles = {"worker": {"memory": "1Gi"}}
    assert road.ended(road.scene.launch(EXPORT, name="double", roles=roles)).phase == "SUCCEEDED"
    road.did("models", "serve", "double", "--wait", "--json")
    answer = road.did("models", "predict", "double@1", "--input", '{"instances": [[1, 2.5]]}')
    assert json.loads(answer) == {"predictions": [[2.0, 5.0]]}


def test_no_signed_address_is_written_anywhere(road: Road):
    found = road.written.everything()
    said = b"\n".join(found.values())
    for name in ("streamed all", "GET /api/v1/", "datasets/", "SUCCEEDED"):
        assert name.encode() in said, f"what was written is not all: {name} is missing"
    assert len(road.addresses) > 20
    leaks = road.written.leaks(found, road.addresses)
    assert not leaks, "\n".join(leaks[:20])


def test_no_address_lives_longer_than_a_quarter_of_an_hour(road: Road):
    lived = {lives(one) for one in road.addresses}
    assert lived, "no address was handed out"
    assert all(life is not None and 0 < life <= LONGEST_LIFE for life in lived), lived
