"""A portal whose objects lie on MinIO: browsers and the command line send to it and read from it themselves."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from minio import Minio as MinioClient
from playwright.sync_api import Browser, Page, Request, StorageState, expect
from playwright.sync_api import Error as PlaywrightError

from tests.browser.visitor import Visitor, chromium_path, cookies_of, visitor
from tests.real.object_stores import KEYS, S3Server, minio_server
from tests.real.portal import CHEAP, WHOLE, RealPortal, real_portal
from yardmaster_client import Yardmaster
from yardmaster_runner.checksums import Checksum

__all__ = ["minio_server"]
pytestmark = pytest.mark.s3

MIB = 1 << 20
BUCKET = "portal-of-pages"
SENT_AT_MOST = 69
_HOLD_LATER_PARTS = r"""
const { open, send } = XMLHttpRequest.prototype;
XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.isHeld = /partNumber=([7-9]\d|\d{3})&/.test(url);
    return open.call(this, method, url, ...rest);
};
XMLHttpRequest.prototype.send = function (body) {
    if (!this.isHeld) send.call(this, body);
};
"""
"""In the page: through Playwright's routes, parts of this size take too long."""


@pytest.fixture(scope="module")
def portal(minio_server: S3Server) -> Iterator[RealPortal]:
    access_key, secret_key = KEYS
    settings = {
        "YARDMASTER_S3_ENDPOINT": minio_server.url,
        "YARDMASTER_S3_BUCKET": BUCKET,
        "YARDMASTER_S3_ACCESS_KEY": access_key,
        "YARDMASTER_S3_SECRET_KEY": secret_key,
    }
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-real-") as folder,
        real_portal(Path(folder), WHOLE, CHEAP | settings) as running,
    ):
        running.manage("prepare")
        yield running


@pytest.fixture(scope="module")
def client(portal: RealPortal) -> Iterator[Yardmaster]:
    with Yardmaster(portal.url, portal.token_of("ada", is_staff=True)) as one:
        yield one


@pytest.fixture(scope="module")
def state(browser: Browser, portal: RealPortal, client: Yardmaster) -> StorageState:
    return cookies_of(browser, portal.url, "ada")


@pytest.fixture
def sender(browser: Browser, portal: RealPortal, state: StorageState) -> Iterator[Visitor]:
    with visitor(browser, portal.url, storage_state=state) as one:
        yield one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of three parts, one with an odd name, and an empty one."""
    place = tmp_path_factory.mktemp("data")
    (place / "big.bin").write_bytes(os.urandom(20 * MIB))
    (place / "größe, 名前+a&b.csv").write_bytes(b"a,b\n1,2\n")
    (place / "empty.txt").write_bytes(b"")
    return place


def _store(server: S3Server) -> MinioClient:
    access_key, secret_key = KEYS
    return MinioClient(urlsplit(server.url).netloc, access_key, secret_key, secure=False)


def _keys(server: S3Server) -> list[str]:
    return [one.object_name or "" for one in _store(server).list_objects(BUCKET, recursive=True)]


def _objects(server: S3Server) -> dict[str, bytes]:
    """Every object of the portal's bucket."""
    return {key: _store(server).get_object(BUCKET, key).read() for key in _keys(server)}


def test_what_the_command_line_sends_lies_in_the_bucket_and_comes_back(
    client: Yardmaster, minio_server: S3Server, portal: RealPortal, folder: Path, tmp_path: Path
):
    version = client.datasets.put("sent", [folder]).latest
    assert version is not None
    stored = list(client.datasets.files(version.id))
    objects = _objects(minio_server)
    for file in stored:
        [content] = [data for key, data in objects.items() if key.endswith("/" + file.path)]
        assert content == (folder / file.path).read_bytes()
        checksum = Checksum(file.size, file.sha256)
        checksum.update(content)
        assert checksum.text() == file.sha256
    assert len(stored) == 3
    client.datasets.download(version.id, tmp_path)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {
        one.name: one.read_bytes() for one in folder.iterdir()
    }
    assert client.datasets.check(version.id) == ()


def test_the_page_sends_every_byte_straight_to_the_store(sender: Visitor, minio_server: S3Server, folder: Path):
    requests: list[Request] = []
    sender.page.on("request", lambda one: requests.append(one) if one.method == "PUT" else None)
    sender.goto("/datasets/upload/")
    sender.page.locator("#pick-files").set_input_files(sorted(folder.iterdir()))
    sender.page.locator("#name").fill("by hand")
    sender.page.get_by_role("button", name="Upload").click()
    expect(sender.page.get_by_role("heading", name="by hand")).to_be_visible(timeout=60_000)
    sent: dict[str, int] = {}
    for one in requests:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(one.url))
        sent[origin] = sent.get(origin, 0) + int(one.all_headers()["content-length"])
    assert sent == {minio_server.url: sum(one.stat().st_size for one in folder.iterdir())}
    with sender.page.expect_download() as waiting:
        sender.page.get_by_label("Download big.bin").click()
    assert Path(waiting.value.path()).read_bytes() == (folder / "big.bin").read_bytes()


@contextmanager
def own_profile(browser: Browser, profile: Path, state: StorageState) -> Iterator[Page]:
    """A Chromium of its own, which keeps what pages keep in `profile`, also when it is killed."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    context = browser.browser_type.launch_persistent_context(
        str(profile), executable_path=chromium_path(), args=[*sandbox, "--disable-dev-shm-usage"]
    )
    context.add_cookies(state["cookies"])
    try:
        yield context.pages[0]
    finally:
        with suppress(PlaywrightError):
            context.close()


def kill_browser(profile: Path) -> None:
    for process in psutil.process_iter(["cmdline"]):
        if any(str(profile) in word for word in process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.mark.long
def test_a_gibibyte_is_sent_by_a_browser_that_is_killed_and_another_that_resumes(
    browser: Browser,
    state: StorageState,
    client: Yardmaster,
    minio_server: S3Server,
    tmp_path: Path,
):
    file, profile = tmp_path / "large.bin", tmp_path / "profile"
    with file.open("wb") as out:
        for part in range(128):
            out.seek(part * 8 * MIB)
            out.write(os.urandom(4096))
        out.truncate(1024 * MIB)
    address = f"{client.transport.url}/datasets/upload/"

    def done() -> list[int]:
        [upload] = client.transport.get("uploads/")["results"]
        return client.transport.get(f"uploads/{upload['id']}/")["files"][0]["done"]

    with own_profile(browser, profile, state) as page:
        page.add_init_script(_HOLD_LATER_PARTS)  # something is left to send however late the end comes
        page.goto(address)
        page.locator("#pick-files").set_input_files(file)
        page.locator("#name").fill("killed")
        with page.expect_event("requestfinished", lambda one: one.method == "PUT" and "partNumber=30&" in one.url):
            page.get_by_role("button", name="Upload").click()
        kill_browser(profile)
    known = done()
    assert 20 <= len(known) <= SENT_AT_MOST
    puts: list[str] = []
    with own_profile(browser, profile, state) as page:
        page.on("request", lambda one: puts.append(one.url) if one.method == "PUT" else None)
        page.goto(address)
        with page.expect_response(re.compile(r"/api/v1/uploads/[^/]+/$")) as asked:
            page.get_by_role("button", name="Resume").first.click()
        # Parts of which the last bytes were on their way may still have been stored.
        before = asked.value.json()["files"][0]["done"]
        assert set(before) >= set(known)
        expect(page.locator("#chosen-words")).to_contain_text("Choose the same files again to resume")
        page.locator("#name").fill("killed")  # Chromium writes down what pages keep every few seconds alone
        page.locator("#pick-files").set_input_files(file)
        page.locator("#start").click()
        expect(page.get_by_role("heading", name="killed")).to_be_visible(timeout=120_000)
    assert len(puts) == 128 - len(before), "a part that had arrived was sent again"
    version = client.datasets.find("killed").latest
    [stored] = client.datasets.files(version.id)
    with file.open("rb") as source:
        here = Checksum(stored.size, stored.sha256)
        for chunk in iter(lambda: source.read(MIB), b""):
            here.update(chunk)
    assert here.text() == stored.sha256
    there = Checksum(stored.size, stored.sha256)
    [key] = [one for one in _keys(minio_server) if one.endswith("/large.bin")]
    with closing(_store(minio_server).get_object(BUCKET, key)) as body:
        for chunk in body.stream(MIB):
            there.update(chunk)
    assert there.text() == stored.sha256


def test_a_job_reads_its_data_there_and_keeps_its_model_there(
    client: Yardmaster, minio_server: S3Server, folder: Path, tmp_path: Path
):
    (tmp_path / "train.py").write_text(
        "import os, pathlib, shutil\n"
        "model = pathlib.Path(os.environ['MODEL_DIR'])\n"
        "model.mkdir(parents=True, exist_ok=True)\n"
        "shutil.copy(pathlib.Path(os.environ['DATA_DIR'], 'big.bin'), model)\n"
    )
    data, code = client.datasets.put("learnt", [folder]).latest, client.code.put("learning", [tmp_path]).latest
    assert data is not None
    assert code is not None
    one = {"replicas": 1, "cpu": 0.1, "memory": 256 << 20}
    job = client.jobs.launch(
        {
            "name": "learning", "strategy": "single", "code": code.id, "entry_point": "train.py",
            "inputs": [{"dataset_version": data.id}], "roles": {"worker": one},
        },
        engine="local",
    )  # fmt: skip
    job = client.jobs.wait(job.id, timeout=90)
    assert (job.phase, job.model is not None) == ("SUCCEEDED", True)
    [kept] = [one for key, one in _objects(minio_server).items() if "/models/" in key and key.endswith("/big.bin")]
    assert kept == (folder / "big.bin").read_bytes()


def test_a_deleted_dataset_leaves_no_object(client: Yardmaster, minio_server: S3Server, folder: Path):
    before = set(_objects(minio_server))
    made = client.datasets.put("short-lived", [folder])
    assert len(set(_objects(minio_server)) - before) == 3
    client.datasets.delete(made.id)
    assert set(_objects(minio_server)) == before


def test_no_address_that_is_signed_stands_in_a_log(portal: RealPortal, client: Yardmaster, folder: Path, tmp_path):
    version = client.datasets.put("logged", [folder]).latest
    assert version is not None
    client.datasets.download(version.id, tmp_path)
    for file in (portal.home / "log").iterdir():
        assert "X-Amz-" not in file.read_text(errors="replace"), file.name
