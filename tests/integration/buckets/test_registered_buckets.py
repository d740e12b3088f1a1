"""Buckets of a real MinIO server as datasets: listed and signed, never copied and never written."""

from __future__ import annotations

import io
import itertools
import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import urllib3
from django.utils import timezone
from minio.error import S3Error

from apps.audit.models import AuditEvent
from apps.buckets import access
from apps.buckets.models import Bucket, State
from apps.datasets import scanning
from apps.datasets.integrity import version_check
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.registering import bucket_rescan, buckets_forget
from apps.datasets.scanning import bucket_scan, buckets_sweep
from apps.datasets.selectors import DATASETS
from apps.namespaces.models import Namespace, Quota
from apps.secrets.models import Kind
from apps.secrets.services import secret_set
from apps.stores import storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.versioned.selectors import files_in
from apps.uploads.versioned.services import collection_delete
from tests.real.object_stores import KEYS, S3Server, minio_server
from yardmaster.errors import Unavailable
from yardmaster.storage.base import ObjectStat
from yardmaster.storage.s3 import S3Storage

__all__ = ["minio_server"]
pytestmark = pytest.mark.s3
API = "/api/v1/buckets/"


@pytest.fixture
def theirs(minio_server: S3Server) -> S3Storage:
    """A bucket with three objects and a folder marker, outside of the portal."""
    name = f"theirs-{uuid.uuid4().hex[:8]}"
    store = S3Storage(minio_server.url, name, *KEYS)
    store.prepare()
    for path, content in {"data/a.txt": b"first", "data/b/c.txt": b"second", "other.txt": b"third"}.items():
        store.put(path, content)
    store._objects.put_object(name, "data/empty/", io.BytesIO(), 0)
    return store


@pytest.fixture
def mine(ada, settings, tmp_path, minio_server: S3Server) -> Namespace:
    """Ada's namespace with the keys of the server, which users may name."""
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects"}
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"options": options}
    settings.YARDMASTER_BUCKET_ENDPOINTS = [minio_server.url]
    access.forget_all()
    namespace = Namespace.objects.get(owner=ada)
    keys = json.dumps(dict(zip(("access_key", "secret_key"), KEYS, strict=True)))
    secret_set(namespace=namespace, name="KEYS", value=keys, actor=ada, kind=Kind.S3)
    return namespace


def register(client, store: S3Storage, **body):
    return client.post(API, {"name": "theirs", "bucket": store._bucket, "prefix": "data", "secret": "KEYS"} | body)


def scanned(client, store: S3Storage, **body) -> Bucket:
    answer = register(client, store, **body)
    assert answer.status_code == 202, answer.json()
    bucket_scan(uuid.UUID(answer.json()["id"]))
    return Bucket.objects.get(pk=answer.json()["id"])


def again(bucket: Bucket, ada) -> Bucket:
    bucket_rescan(bucket=bucket, user=ada)
    bucket_scan(bucket.pk)
    return Bucket.objects.get(pk=bucket.pk)


@pytest.fixture
def bucket(ada, mine, theirs, with_token) -> Bucket:
    found = scanned(with_token(ada), theirs, namespace="")  # as the command line says that none was chosen
    assert found.state == State.READY, found.problem
    return found


@pytest.fixture
def version(bucket) -> DatasetVersion:
    return DatasetVersion.objects.get(parent=bucket.dataset_id)


def test_a_folder_of_a_bucket_becomes_a_dataset_without_copying(bucket, version, mine):
    assert [(one.path, one.size) for one in files_in(version)] == [("a.txt", 5), ("b/c.txt", 6)]
    assert (version.size, version.file_count, version.number) == (11, 2, 1)
    assert storage_used(mine).used == 0
    (event,) = AuditEvent.objects.filter(action="bucket.register")
    assert event.facts["address"] == bucket.address
    assert KEYS[1] not in json.dumps(event.facts)


def test_the_keys_of_few_buckets_are_kept_at_a_time(bucket, version, monkeypatch):
    monkeypatch.setattr(access, "MOST_REMEMBERED", 2)
    Bucket.objects.bulk_create(
        [Bucket(**fields_of(bucket) | {"id": uuid.uuid4(), "dataset_id": None, "name": f"b{n}"}) for n in range(3)]
    )
    for one in Bucket.objects.all():
        assert storage().stat(f"buckets/{one.pk}/{version.pk}/a.txt").size == 5
        assert len(access._known) <= 2


def fields_of(bucket: Bucket) -> dict[str, object]:
    return {one.attname: getattr(bucket, one.attname) for one in Bucket._meta.concrete_fields}


def test_its_files_are_read_with_addresses_of_its_server(ada, version, with_token, minio_server):
    client = with_token(ada)
    base = f"/api/v1/dataset-versions/{version.pk}/files/"
    assert client.get(base).json()["results"][0]["sha256"].startswith("etag:")
    sent = client.get(f"{base}content/?path=b/c.txt")
    assert sent.status_code == 302
    assert sent.headers["Location"].startswith(minio_server.url)
    assert KEYS[1] not in sent.headers["Location"]
    assert urllib3.request("GET", sent.headers["Location"]).data == b"second"
    preview = client.get(f"/api/v1/dataset-versions/{version.pk}/preview/?path=a.txt").json()
    assert preview["text"] == "first"


def test_a_new_scan_makes_a_version_of_what_has_changed_and_none_where_nothing_has(ada, bucket, theirs):
    assert again(bucket, ada).state == State.READY
    assert DatasetVersion.objects.count() == 1
    theirs.put("data/a.txt", b"another")
    theirs.put("data/new.txt", b"new")
    theirs.delete("data/b/c.txt")
    again(bucket, ada)
    newest = DatasetVersion.objects.get(number=2)
    assert (newest.added, newest.changed, newest.removed) == (1, 1, 1)
    assert Upload.objects.filter(state="complete").count() == 2


def test_objects_that_were_replaced_or_deleted_are_found_by_the_check(theirs, version):
    assert version_check(version).corrupt == []
    theirs.put("data/a.txt", b"other")
    theirs.delete("data/b/c.txt")
    messages = {one.path: one.message for one in version_check(version).corrupt}
    assert "replaced" in messages["a.txt"]
    assert "deleted" in messages["b/c.txt"]


def test_deleting_the_dataset_deletes_nothing_in_the_bucket(ada, bucket, theirs, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        collection_delete(DATASETS, Dataset.objects.get(pk=bucket.dataset_id), actor=ada)
    assert {one.key for one in theirs.everything()} == {"data/a.txt", "data/b/c.txt", "data/empty/", "other.txt"}
    assert not Upload.objects.exists()
    assert buckets_forget(bucket.created_at) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"bucket": "no-such-bucket-anywhere"}, "There is no bucket"),
        ({"prefix": "nothing/here"}, "no objects"),
        ({"secret": "WRONG"}, "refuses to list"),
    ],
)
def test_what_cannot_be_scanned_says_why_and_leaves_nothing(ada, mine, theirs, with_token, body, words):
    wrong = json.dumps({"access_key": "somebody-else", "secret_key": "not-the-right-key"})
    secret_set(namespace=mine, name="WRONG", value=wrong, actor=ada, kind=Kind.S3)
    found = scanned(with_token(ada), theirs, **body)
    assert found.state == State.FAILED
    assert words in found.problem["detail"]
    assert "YARDMASTER_S3" not in json.dumps(found.problem)
    assert not Dataset.objects.exists()
    assert not Upload.objects.exclude(state="deleting").exists()


def test_objects_that_cannot_be_files_are_left_out_and_named(ada, client, mine, theirs, with_token):
    for name in ("bad\\name.txt", "dot.", "space "):
        theirs._objects.put_object(theirs._bucket, f"data/{name}", io.BytesIO(b"x"), 1)
    found = scanned(with_token(ada), theirs)
    assert (found.state, found.scanned, found.left_out) == (State.READY, 2, 3)
    answer = with_token(ada).get(f"{API}{found.pk}/").json()
    assert answer["left_out"] == 3
    assert {one["path"] for one in answer["left_out_first"]} == {"bad\\name.txt", "dot.", "space "}
    assert "backslash" in answer["left_out_first"][0]["reason"]
    client.force_login(ada)
    shown = client.get("/datasets/buckets/").content.decode()
    assert "3 objects left out" in shown
    assert "bad\\name.txt" in shown
    assert again(found, ada).left_out == 3


def test_a_bucket_of_objects_that_are_all_left_out_is_no_dataset(ada, mine, theirs, with_token):
    theirs._objects.put_object(theirs._bucket, "odd/dot.", io.BytesIO(b"x"), 1)
    found = scanned(with_token(ada), theirs, prefix="odd")
    assert (found.state, "'dot.'" in found.problem["detail"]) == (State.FAILED, True)


@pytest.mark.parametrize("at_once", [2, 3, 7, 50])
def test_an_object_that_is_a_folder_too_is_left_out(ada, mine, theirs, with_token, monkeypatch, at_once):
    """Other servers than MinIO keep both. What lies below it comes pages later."""
    names = ["a", *(f"a-{number}" for number in range(5)), "a/b", "b"]
    monkeypatch.setattr(scanning, "AT_ONCE", at_once)
    monkeypatch.setattr(S3Storage, "everything", lambda self, after="": (_object(n) for n in names if n > after))
    found = scanned(with_token(ada), theirs)
    assert (found.state, found.left_out_first) == (
        State.READY, [{"path": "a", "reason": "is also a folder of other objects"}],
    )  # fmt: skip
    assert [one.path for one in files_in(DatasetVersion.objects.get())] == names[1:]


def test_an_object_that_becomes_a_folder_while_the_bucket_is_listed_is_named(
    ada, mine, theirs, with_token, monkeypatch
):
    names = ["a", "a-0", "a-1"]
    monkeypatch.setattr(scanning, "AT_ONCE", 2)
    real = scanning._keep

    def keep(*arguments):
        names.append("a/b")
        real(*arguments)

    monkeypatch.setattr(scanning, "_keep", keep)
    monkeypatch.setattr(
        S3Storage, "everything", lambda self, after="": (n for n in map(_object, names) if n.key > after)
    )
    found = scanned(with_token(ada), theirs)
    assert found.state == State.FAILED
    assert "'a' became a folder" in found.problem["detail"]


def _refused(status: int, code: str) -> Unavailable:
    answer = S3Error(SimpleNamespace(status=status), code, "It is so.", "/b", "", "")  # type: ignore[arg-type]
    error = Unavailable(f"Listing a bucket: the object store answered {code}: It is so.")
    error.__cause__ = answer
    return error


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "AuthorizationHeaderMalformed"),
        (403, "RequestTimeTooSkewed"),
        (301, "PermanentRedirect"),
        (400, "InvalidBucketName"),
        (404, "Whatever"),
    ],
)
def test_a_server_that_refuses_for_good_ends_the_scan_at_once(ada, mine, theirs, with_token, monkeypatch, status, code):
    monkeypatch.setattr(S3Storage, "everything", lambda self, after="": _raises(_refused(status, code)))
    found = scanned(with_token(ada), theirs)
    assert (found.state, code in found.problem["detail"]) == (State.FAILED, True)


@pytest.mark.parametrize(("status", "code"), [(503, "SlowDown"), (400, "RequestTimeout"), (429, "TooMany")])
def test_a_server_that_may_answer_later_is_asked_again_and_quoted(
    ada, client, mine, theirs, with_token, monkeypatch, status, code
):
    monkeypatch.setattr(S3Storage, "everything", lambda self, after="": _raises(_refused(status, code)))
    found = scanned(with_token(ada), theirs)
    assert found.state == State.SCANNING
    client.force_login(ada)
    shown = client.get("/datasets/buckets/").content.decode()
    assert f"answered {code}" in shown
    assert "did not answer" not in shown


def _raises(error: Exception):
    raise error
    yield


def _object(name: str) -> ObjectStat:
    return ObjectStat(name, 1, "0", datetime.now(UTC))


def test_a_server_that_fails_for_a_while_does_not_end_the_scan(ada, client, mine, theirs, with_token, monkeypatch):
    monkeypatch.setattr(scanning, "AT_ONCE", 2)
    asked = []

    def everything(self, after=""):
        if not after.endswith("/"):  # else whether the last one is a folder, too
            asked.append(after)
        yield from (_object(name) for name in ("a", "b", "c") if name > after)
        if len(asked) < 3:
            raise Unavailable("Listing a bucket: the object store answered SlowDown: busy")

    monkeypatch.setattr(S3Storage, "everything", everything)
    found = scanned(with_token(ada), theirs)
    assert (found.state, found.failures) == (State.SCANNING, 1)
    assert found.next_look_at > timezone.now()
    client.force_login(ada)
    assert "The scan continues" in client.get("/datasets/buckets/").content.decode()
    for _ in range(2):
        Bucket.objects.update(next_look_at=timezone.now())
        bucket_scan(found.pk)
    found.refresh_from_db()
    assert (found.state, found.failures, found.scanned) == (State.READY, 0, 3)
    assert asked == ["", "b", "b"]


def test_a_server_that_fails_for_long_ends_the_scan(ada, mine, theirs, with_token, monkeypatch):
    monkeypatch.setattr(S3Storage, "everything", lambda self, after="": _fails())
    monkeypatch.setattr(scanning, "RETRIES", 1)
    found = scanned(with_token(ada), theirs)
    Bucket.objects.update(next_look_at=timezone.now())
    bucket_scan(found.pk)
    found.refresh_from_db()
    assert (found.state, found.problem["code"]) == (State.FAILED, "scan_failed")


def test_a_server_that_answers_now_and_then_does_not_keep_a_scan_for_ever(ada, mine, theirs, with_token, monkeypatch):
    """Each page that is listed forgets the failures before it, so that their number alone would never end the scan."""
    monkeypatch.setattr(scanning, "AT_ONCE", 1)
    monkeypatch.setattr(S3Storage, "everything", lambda self, after="": _one_and_fails(after))
    found = scanned(with_token(ada), theirs)
    assert (found.state, found.scanned) == (State.SCANNING, 1)
    Bucket.objects.update(next_look_at=timezone.now(), started_at=timezone.now() - scanning.LONGEST)
    bucket_scan(found.pk)
    found.refresh_from_db()
    assert (found.state, found.problem["code"]) == (State.FAILED, "scan_failed")


def _one_and_fails(after):
    yield _object(after.rstrip("/") + "x")
    raise Unavailable("the object store answered SlowDown")


def _fails():
    raise Unavailable("the object store did not answer")
    yield


def test_a_scan_in_several_passes_lists_each_object_once(ada, mine, theirs, with_token, monkeypatch):
    for number in range(7):
        theirs.put(f"data/n{number}", b"x")
    monkeypatch.setattr(scanning, "AT_ONCE", 2)
    made = register(with_token(ada), theirs).json()
    now = iter(range(0, 20_000, 1_000))
    passes = 0
    while passes < 10:
        passes += 1
        bucket_scan(uuid.UUID(made["id"]), clock=lambda: float(next(now)))
        found = Bucket.objects.get(pk=made["id"])
        if found.state == State.READY:
            break
    assert passes > 2
    names = [one.path for one in files_in(DatasetVersion.objects.get())]
    assert names == ["a.txt", "b/c.txt", *(f"n{number}" for number in range(7))]


def test_objects_that_stand_for_folders_end_a_pass_as_others_do(ada, mine, theirs, with_token, monkeypatch):
    """A server could list such objects for ever."""
    monkeypatch.setattr(scanning, "AT_ONCE", 2)
    monkeypatch.setattr(S3Storage, "everything", lambda self, after="": map(_object, itertools.repeat("folder/")))
    made = register(with_token(ada), theirs).json()
    bucket_scan(uuid.UUID(made["id"]), clock=itertools.count(step=1_000).__next__)
    found = Bucket.objects.get(pk=made["id"])
    assert (found.state, found.scanned, found.last_path) == (State.SCANNING, 0, "folder/")


def test_an_object_that_is_larger_than_any_file_may_be_is_left_out(ada, mine, theirs, with_token, monkeypatch):
    found = [_object("a"), replace(_object("b"), size=(1 << 63) - 1)]
    monkeypatch.setattr(S3Storage, "everything", lambda self, after="": iter(found))
    made = scanned(with_token(ada), theirs)
    assert (made.state, made.scanned, made.left_out) == (State.READY, 1, 1)
    assert "at most 5,497,558,138,880" in made.left_out_first[0]["reason"]


def test_more_objects_than_a_version_may_have_are_refused(ada, mine, theirs, with_token, settings):
    settings.YARDMASTER_FILES_PER_VERSION = 1
    assert scanned(with_token(ada), theirs).problem["code"] == "scan_failed"


def test_the_files_of_a_bucket_count_against_the_quota_and_its_bytes_do_not(ada, bucket, mine, theirs, with_token):
    assert (storage_used(mine).files, storage_used(mine).used) == (2, 0)
    Quota.objects.update_or_create(namespace=mine, defaults={"files": 3})
    theirs.put("data/new.txt", b"new")
    failed = again(bucket, ada)
    assert (failed.state, failed.problem["code"]) == (State.FAILED, "quota_full")
    assert "1 of 3 are available" in failed.problem["detail"]
    assert storage_used(mine).files == 2


def test_users_name_allowed_servers_only_and_administrators_no_metadata_service(ada, admin, mine, theirs, with_token):
    client = with_token(ada)
    for endpoint in ("http://127.0.0.1:1", "http://169.254.169.254", "https://s3.example.org"):
        refused = register(client, theirs, endpoint=endpoint)
        assert refused.json()["errors"][0]["field"] == "endpoint", endpoint
    everywhere = with_token(admin)
    for endpoint in ("http://169.254.169.254", "http://[fe80::1]", "http://0.0.0.0:9000", "ftp://x", "http://u:p@x"):
        refused = register(everywhere, theirs, endpoint=endpoint, namespace=str(mine.pk))
        assert refused.status_code == 400, endpoint
    allowed = register(everywhere, theirs, endpoint="https://s3.example.org", namespace=str(mine.pk))
    assert allowed.status_code == 202


def test_secrets_and_buckets_of_others_cannot_be_named(ada, bob, bucket, theirs, with_token):
    refused = register(with_token(bob), theirs)
    assert refused.json()["errors"][0]["code"] == "unknown_secret"
    assert with_token(bob).get(f"{API}{bucket.pk}/").status_code == 404
    assert with_token(bob).post(f"/api/v1/datasets/{bucket.dataset_id}/rescan/").status_code == 404
    assert register(with_token(ada), theirs).json()["code"] == "name_taken"


def test_keys_of_administrators_register_for_a_namespace_whose_members_cannot_use_them(
    ada, admin, mine, theirs, with_token, client
):
    keys = {"kind": "s3_admin", "access_key": KEYS[0], "secret_key": KEYS[1]}
    address = f"/api/v1/namespaces/{mine.pk}/secrets/THEIRS/"
    member, administrator = with_token(ada), with_token(admin)
    assert member.put(address, keys).status_code == 403
    assert administrator.put(address, keys).status_code == 201
    refused = register(member, theirs, secret="THEIRS", name="others")
    assert refused.json()["errors"][0]["code"] == "unknown_secret"
    found = scanned(administrator, theirs, secret="THEIRS", namespace=str(mine.pk))
    assert found.state == State.READY
    version = DatasetVersion.objects.get(parent=found.dataset_id)
    assert member.get(f"/api/v1/dataset-versions/{version.pk}/files/content/?path=a.txt").status_code == 302
    assert again(found, ada).state == State.READY
    again_with = member.post(f"/api/v1/datasets/{found.dataset_id}/rescan/", {"secret": "THEIRS"})
    assert again_with.json()["errors"][0]["code"] == "unknown_secret"
    for changed in (keys, keys | {"kind": "s3"}):
        assert member.put(address, changed).status_code in (403, 409)
    Bucket.objects.update(state=State.FAILED, problem={"detail": "It failed.", "remedy": ""})
    client.force_login(ada)
    shown = client.get("/datasets/buckets/").content.decode()
    assert "Same credentials" in shown
    assert '<option value="THEIRS">' not in shown


def test_credentials_in_use_are_not_deleted_by_accident_and_their_loss_is_said(ada, bucket, mine, version, with_token):
    client = with_token(ada)
    address = f"/api/v1/namespaces/{mine.pk}/secrets/KEYS/"
    assert "dataset theirs" in client.delete(address).json()["detail"]
    assert client.delete(f"{address}?force=1").status_code == 204
    access.forget_all()
    lost = client.get(f"/api/v1/dataset-versions/{version.pk}/files/content/?path=a.txt")
    assert (lost.status_code, lost.json()["code"]) == (404, "secret_missing")
    assert again(bucket, ada).problem["code"] == "secret_missing"


def test_a_dataset_whose_credentials_are_gone_is_read_with_others(ada, client, bucket, mine, version, with_token):
    api = with_token(ada)
    bucket.secret.delete()
    access.forget_all()
    problem = again(bucket, ada).problem
    assert "datasets rescan theirs --secret" in problem["remedy"]
    keys = json.dumps(dict(zip(("access_key", "secret_key"), KEYS, strict=True)))
    secret_set(namespace=mine, name="OTHERS", value=keys, actor=ada, kind=Kind.S3)
    address = f"/api/v1/datasets/{bucket.dataset_id}/rescan/"
    assert api.post(address, {"secret": "NONE"}).json()["errors"][0]["code"] == "unknown_secret"
    assert Bucket.objects.get().state == State.FAILED
    assert api.post(address, {"secret": "OTHERS"}).json()["secret"] == "OTHERS"
    bucket_scan(bucket.pk)
    assert Bucket.objects.get().state == State.READY
    assert api.get(f"/api/v1/dataset-versions/{version.pk}/files/content/?path=a.txt").status_code == 302
    assert AuditEvent.objects.get(action="bucket.secret").facts["secret"] == "OTHERS"


def test_the_page_repairs_a_dataset_whose_credentials_are_gone(ada, client, bucket, mine):
    bucket.secret.delete()
    keys = json.dumps(dict(zip(("access_key", "secret_key"), KEYS, strict=True)))
    secret_set(namespace=mine, name="OTHERS", value=keys, actor=ada, kind=Kind.S3)
    client.force_login(ada)
    shown = client.get("/datasets/buckets/").content.decode()
    assert "Its credentials were deleted" in shown
    assert '<option value="OTHERS">' in shown.partition("Register a bucket")[0]
    address = f"/datasets/buckets/{bucket.pk}/scan/"
    assert "no bucket credentials" in client.post(address, {"secret": "NONE"}, follow=True).content.decode()
    client.post(address, {"secret": "OTHERS"})
    assert (Bucket.objects.get().secret.name, Bucket.objects.get().state) == ("OTHERS", State.SCANNING)


def test_replaced_credentials_are_used_after_two_seconds(ada, mine, version, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(access, "time", SimpleNamespace(monotonic=lambda: now[0]))
    access.forget_all()
    key = f"{version.key_prefix}/a.txt"
    assert KEYS[0] in storage().read_url(key, timedelta(minutes=1))
    other = json.dumps({"access_key": "another-key", "secret_key": "another-secret"})
    secret_set(namespace=mine, name="KEYS", value=other, actor=ada, kind=Kind.S3)
    now[0] += 2.0
    assert "another-key" in storage().read_url(key, timedelta(minutes=1))


def test_a_scan_whose_message_was_lost_is_found_by_the_sweep(ada, mine, theirs, with_token, monkeypatch):
    woken = []
    monkeypatch.setattr(scanning, "enqueue", lambda task, subject: woken.append(subject))
    made = register(with_token(ada), theirs).json()
    buckets_sweep(Bucket.objects.get(pk=made["id"]).started_at)
    assert [str(one) for one in woken] == [made["id"]]


def test_the_page_registers_and_shows_how_the_scan_stands(client, ada, mine, theirs):
    client.force_login(ada)
    page = "/datasets/buckets/"
    assert "No buckets yet" in client.get(page).content.decode()
    form = {"name": "theirs", "bucket": theirs._bucket, "folder": "data", "secret": "KEYS"}
    assert "Scanning" in client.post(page, form, follow=True).content.decode()
    bucket_scan(Bucket.objects.get().pk)
    assert "2 objects" in client.get(page, headers={"HX-Request": "true"}).content.decode()
    assert "already exists" in client.post(page, form).content.decode()
    dataset = f"/datasets/{Bucket.objects.get().dataset_id}/"
    shown = client.get(dataset).content.decode()
    assert "Scan again" in shown
    assert client.post(f"{dataset}scan/").status_code == 302
    assert Bucket.objects.get().state == State.SCANNING


def test_pictures_of_its_server_are_allowed_on_the_page_of_the_dataset_alone(client, ada, bucket, minio_server):
    client.force_login(ada)
    policies = {
        page: client.get(page).headers["Content-Security-Policy"]
        for page in (f"/datasets/{bucket.dataset_id}/", "/datasets/", "/datasets/buckets/")
    }
    assert [f"img-src 'self' data: {minio_server.url};" in policy for policy in policies.values()] == [
        True, False, False,
    ]  # fmt: skip
    assert all("connect-src 'self';" in policy for policy in policies.values())
    Bucket.objects.update(endpoint="https://x.test;script-src *")
    assert "x.test" not in client.get(f"/datasets/{bucket.dataset_id}/").headers["Content-Security-Policy"]


def test_the_page_of_a_dataset_is_there_while_its_bucket_cannot_be_read(client, ada, mine, bucket):
    client.force_login(ada)
    bucket.secret.delete()
    access.forget_all()
    shown = client.get(f"/datasets/{bucket.dataset_id}/")
    assert shown.status_code == 200
    assert "cannot be read" in shown.content.decode()
