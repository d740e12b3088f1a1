"""Datasets that the portal makes from sources that it knows, with a mirror on this machine."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone

from apps.datasets.making import made_run, made_sweep
from apps.datasets.models import Dataset, DatasetVersion, MadeDataset
from apps.datasets.selectors import DATASETS
from apps.namespaces.models import Quota
from apps.stores import storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.versioned.selectors import file_key, files_in
from apps.uploads.versioned.services import version_delete
from portal.dataset_downloads import DatasetDownloads
from yardmaster.code import known_data
from yardmaster.code.known_data import KnownFile

pytestmark = pytest.mark.django_db
API = "/api/v1/made-datasets/"
LARGE = bytes(range(256)) * (40 << 10)
"""More than one part of an upload."""
FILES = {"mnist.npz": LARGE, "words.json": b"{}", "imdb.npz": b"reviews"}


class Mirror(BaseHTTPRequestHandler):
    files: dict[str, bytes]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        content = self.files.get(self.path.removeprefix("/data/"))
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(settings, monkeypatch) -> Iterator[type[Mirror]]:
    """A server with the files, which the portal fetches from, and a list of sources that names them."""

    class Handler(Mirror):
        files = dict(FILES)
        asked: list[str] = []

    def known(name: str, digest: str) -> KnownFile:
        return KnownFile(f"datasets/{name}", f"https://nowhere.invalid/{name}", digest)

    of = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    words = hashlib.md5(FILES["words.json"], usedforsecurity=False).hexdigest()
    sources = {
        "mnist": (known("mnist.npz", of["mnist.npz"]),),
        "imdb": (known("imdb.npz", of["imdb.npz"]), known("words.json", words)),
    }
    monkeypatch.setattr(known_data, "KERAS", sources)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/data"
        settings.YARDMASTER_DATASET_DOWNLOADS = DatasetDownloads(True, address)
        yield Handler
        server.shutdown()


@pytest.fixture
def me(ada, store, with_token):
    return with_token(ada)


def asked(me, source: str = "keras/mnist", **body) -> dict:
    answer = me.post(API, {"source": source} | body)
    assert answer.status_code == 202, answer.json()
    return answer.json()


def made(me, source: str = "keras/mnist") -> dict:
    one = asked(me, source)
    made_run(uuid.UUID(one["id"]))
    return me.get(f"{API}{one['id']}/").json()


def test_the_files_become_a_version_that_counts_against_the_quota(me, ada, mirror):
    found = made(me)
    assert (found["state"], found["received"], found["problem"]) == ("ready", len(LARGE), None)
    version = DatasetVersion.objects.select_related("parent").get(pk=found["dataset_version"])
    assert (version.parent.name, version.number, version.created_by) == ("keras-mnist", 1, ada)
    assert [(one.path, one.size) for one in files_in(version)] == [("datasets/mnist.npz", len(LARGE))]
    with storage().open_range(file_key(version, "datasets/mnist.npz")) as stream:
        assert stream.read() == LARGE
    used = storage_used(ada.personal_namespace)
    assert (used.used, used.reserved) == (len(LARGE), 0)
    assert me.get(API).json()["results"] == [found]


def test_the_same_source_is_made_once_and_again_only_after_it_was_deleted(me, ada, mirror):
    first = made(me)
    assert asked(me) == first
    made_run(uuid.UUID(first["id"]))
    assert len(mirror.asked) == 1
    version = DatasetVersion.objects.select_related("parent").get(pk=first["dataset_version"])
    version_delete(DATASETS, version.parent, version, actor=ada)
    assert me.get(f"{API}{first['id']}/").json()["dataset_version"] is None
    again = made(me)
    assert again["dataset_version"] != first["dataset_version"]
    assert DatasetVersion.objects.get(pk=again["dataset_version"]).number == 2
    assert Dataset.objects.count() == 1


def test_several_sources_are_one_dataset(me, mirror):
    found = made(me, "keras/imdb+mnist")
    version = DatasetVersion.objects.get(pk=found["dataset_version"])
    assert found["name"] == "keras-imdb-mnist"
    paths = [one.path for one in files_in(version)]
    assert paths == ["datasets/imdb.npz", "datasets/mnist.npz", "datasets/words.json"]


@pytest.mark.parametrize("source", ["keras/nothing", "keras/mnist+imdb", "mnist", "keras/mnist+mnist", "https://h/x"])
def test_what_is_no_source_is_refused(me, mirror, source):
    answer = me.post(API, {"source": source})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["code"] == "unknown_source"
    assert not MadeDataset.objects.exists()


@pytest.mark.parametrize(("content", "code"), [(b"something else", "download_changed"), (None, "download_failed")])
def test_a_file_that_is_not_the_known_one_is_not_kept(me, ada, mirror, content, code):
    mirror.files["mnist.npz"] = content
    if content is None:
        del mirror.files["mnist.npz"]
    found = made(me)
    assert (found["state"], found["problem"]["code"], found["dataset_version"]) == ("failed", code, None)
    assert found["problem"]["remedy"]
    assert not Dataset.objects.exists()
    assert not Upload.objects.exists()
    assert storage_used(ada.personal_namespace).reserved == 0
    mirror.files["mnist.npz"] = LARGE
    assert made(me)["state"] == "ready"


def test_where_no_server_is_the_message_says_so(me, mirror, settings):
    settings.YARDMASTER_DATASET_DOWNLOADS = DatasetDownloads(True, "http://127.0.0.1:9/data")
    problem = made(me)["problem"]
    assert problem["detail"] == "The portal cannot reach 127.0.0.1:9: it accepts no connection."
    assert "YARDMASTER_DATASET_DOWNLOADS" in problem["remedy"]


def test_switched_off_nothing_is_begun(me, mirror, settings):
    settings.YARDMASTER_DATASET_DOWNLOADS = DatasetDownloads(False)
    answer = me.post(API, {"source": "keras/mnist"})
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset_downloads_off")
    assert not MadeDataset.objects.exists()


def test_a_file_is_bounded_and_a_full_quota_leaves_nothing(me, ada, mirror, monkeypatch):
    monkeypatch.setattr("apps.datasets.making.MOST_BYTES", len(LARGE) - 1)
    assert "has more than" in made(me)["problem"]["detail"]
    monkeypatch.undo()
    monkeypatch.setattr(known_data, "KERAS", {"mnist": known_data_of(LARGE)})
    Quota.objects.update_or_create(namespace=ada.personal_namespace, defaults={"storage": 1000})
    found = made(me)
    assert (found["state"], found["problem"]["code"]) == ("failed", "quota_full")
    assert not Upload.objects.exists()


def known_data_of(content: bytes) -> tuple[KnownFile, ...]:
    digest = hashlib.sha256(content).hexdigest()
    return (KnownFile("datasets/mnist.npz", "https://nowhere.invalid/mnist.npz", digest),)


def test_a_dataset_of_the_same_name_is_not_touched(me, ada, mirror):
    one = asked(me)
    found = made(me)
    version = DatasetVersion.objects.get(pk=found["dataset_version"])
    DatasetVersion.objects.filter(pk=version.pk).update(note="By hand")
    MadeDataset.objects.filter(pk=one["id"]).delete()
    answer = me.post(API, {"source": "keras/mnist"})
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


def test_a_try_that_was_killed_is_done_again_and_leaves_nothing(me, ada, mirror, monkeypatch):
    one = asked(me)
    woken: list[str] = []
    monkeypatch.setattr("apps.datasets.making.enqueue", lambda message, subject: woken.append(str(subject)))

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("apps.datasets.whole_upload.upload_complete", killed)
        with pytest.raises(Killed):
            made_run(uuid.UUID(one["id"]))
    assert Upload.objects.count() == 1
    made_run(uuid.UUID(one["id"]))  # another worker, too early
    made_sweep(timezone.now())
    assert woken == []
    assert MadeDataset.objects.get().state == "making"
    made_sweep(timezone.now() + timedelta(minutes=3))
    assert woken == [one["id"]]
    MadeDataset.objects.update(held_until=timezone.now())
    made_run(uuid.UUID(one["id"]))
    assert me.get(f"{API}{one['id']}/").json()["state"] == "ready"
    used = storage_used(ada.personal_namespace)
    assert (used.used, used.reserved) == (len(LARGE), 0)


def test_others_see_nothing_of_it_and_viewers_make_none(me, ada, bob, with_token, mirror):
    one = asked(me)
    other = with_token(bob)
    assert other.get(f"{API}{one['id']}/").status_code == 404
    assert other.get(API).json()["results"] == []
    assert other.post(API, {"source": "keras/mnist", "namespace": ada.personal_namespace.slug}).status_code in (
        403,
        404,
    )


def test_few_are_made_at_a_time(me, mirror, monkeypatch):
    monkeypatch.setattr("apps.datasets.making.AT_ONCE", 1)
    asked(me)
    answer = me.post(API, {"source": "keras/imdb"})
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_downloads")
