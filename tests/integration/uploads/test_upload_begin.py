"""Beginning an upload: what is checked, and that its bytes are reserved first."""

from __future__ import annotations

import pytest

from apps.errors import QuotaExceeded
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.selectors import namespace_for, quota_of
from apps.uploads.file_blocks import manifest_of
from apps.uploads.manifest import MAX_FILE_SIZE
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.services import upload_begin
from tests.integration.sending import begin, files_of, part
from yardmaster.storage.file_list import ListedFile

PATH = "/api/v1/uploads/"


def _codes(answer) -> set[str]:
    return {error["code"] for error in answer.json()["errors"]}


@pytest.fixture
def team(ada, bob) -> Namespace:
    namespace = Namespace.objects.create(slug="team")
    Membership.objects.create(namespace=namespace, user=ada, role=Role.MEMBER)
    Membership.objects.create(namespace=namespace, user=bob, role=Role.VIEWER)
    return namespace


def test_an_upload_says_how_it_is_to_be_sent(ada, signed_in):
    upload = begin(signed_in(ada), {"a/b.bin": b"x" * 10, "empty": b""})
    assert upload["state"] == "open"
    assert upload["part_size"] == 8388608
    assert upload["expires_at"] > upload["created_at"]
    assert upload["files"] == [
        {"index": 0, "path": "a/b.bin", "size": 10, "parts": 1, "done": []},
        {"index": 1, "path": "empty", "size": 0, "parts": 0, "done": []},
    ]


def test_a_file_of_terabytes_has_at_most_ten_thousand_parts(ada, signed_in):
    answer = signed_in(ada).post(PATH, {"kind": "dataset", "files": [{"path": "big", "size": MAX_FILE_SIZE}]})
    assert answer.status_code == 201
    [file] = answer.json()["files"]
    assert file["parts"] <= 10_000
    assert file["parts"] * answer.json()["part_size"] >= MAX_FILE_SIZE


@pytest.mark.parametrize(
    ("files", "field", "code"),
    [
        ([], "files", "invalid"),
        ("a", "files", "shape"),
        ([{"path": "a"}], "files.0", "invalid"),
        ([{"path": "a", "size": "1"}], "files.0", "invalid"),
        ([{"path": "a", "size": True}], "files.0", "invalid"),
        ([{"path": "a", "size": 1, "mode": 7}], "files.0", "invalid"),
        ([{"path": "a", "size": -1}], "files.0.size", "invalid"),
        ([{"path": "a", "size": MAX_FILE_SIZE + 1}], "files.0.size", "invalid"),
        ([{"path": "a", "size": 1, "sha256": "xyz"}], "files.0.sha256", "invalid"),
        ([{"path": "a", "size": 1, "sha256": "A" * 64}], "files.0.sha256", "invalid"),
        ([{"path": "../a", "size": 1}], "files.0.path", "path_escape"),
        ([{"path": "a", "size": 1}, {"path": "a", "size": 2}], "files.1.path", "path_doubled"),
        ([{"path": "a", "size": 1}, {"path": "a/b", "size": 2}], "files.1.path", "path_conflict"),
        ([{"path": "x" * 10_000, "size": 1}], "files.0.path", "path_too_long"),
    ],
)
def test_bad_files_are_refused_by_name_and_reserve_nothing(ada, signed_in, files, field, code):
    answer = signed_in(ada).post(PATH, {"kind": "dataset", "files": files})
    assert answer.status_code == 400
    assert (answer.json()["errors"][0]["field"], answer.json()["errors"][0]["code"]) == (field, code)
    assert not Upload.objects.exists()


def test_too_many_files_are_refused_with_a_way_out(ada, signed_in, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 24
    files = [{"path": f"f{number}", "size": 0} for number in range(20_001)]
    answer = signed_in(ada).post(PATH, {"kind": "dataset", "files": files})
    assert answer.status_code == 400
    assert "archive" in answer.json()["errors"][0]["remedy"]


def test_beginning_takes_as_few_statements_whatever_the_number_of_files(ada, django_assert_max_num_queries):
    namespace = namespace_for(ada, None)
    files = [ListedFile(f"images/{number:05}.png", 100) for number in range(20_000)]
    with django_assert_max_num_queries(15):
        upload = upload_begin(namespace=namespace, actor=ada, kind="dataset", files=files)
    assert list(manifest_of(upload.pk)) == files


@pytest.mark.parametrize("kind", ["checkpoint", "model", "x", None])
def test_people_send_datasets_and_code_only(ada, signed_in, kind):
    answer = signed_in(ada).post(PATH, {"kind": kind, "files": files_of({"a": b""})})
    assert answer.status_code == 400


def test_members_upload_into_their_team_and_viewers_do_not(ada, bob, signed_in, team):
    assert begin(signed_in(ada), {"a": b"1"}, namespace="team")["namespace"] == str(team.pk)
    answer = signed_in(bob).post(PATH, {"kind": "code", "files": files_of({"a": b""}), "namespace": "team"})
    assert answer.status_code == 403


def test_a_stranger_gets_the_same_404_for_a_foreign_and_an_unknown_namespace(ada, bob, signed_in, team):
    Membership.objects.filter(user=bob).exclude(namespace__owner=bob).delete()
    for namespace in ("team", "nowhere", str(team.pk)):
        answer = signed_in(bob).post(PATH, {"kind": "code", "files": files_of({"a": b""}), "namespace": namespace})
        assert answer.status_code == 404


def test_a_foreign_upload_is_a_404_at_every_address(ada, bob, signed_in):
    upload = begin(signed_in(ada), {"a": b"1"})["id"]
    stranger = signed_in(bob)
    assert stranger.get(f"{PATH}{upload}/").status_code == 404
    assert stranger.delete(f"{PATH}{upload}/").status_code == 404
    assert stranger.post(f"{PATH}{upload}/parts/", {"parts": [part(0, 1)]}).status_code == 404
    assert stranger.post(f"{PATH}{upload}/complete/", {}).status_code == 404
    assert stranger.get(PATH).json()["results"] == []


def test_a_token_for_jobs_does_not_upload(ada, with_token):
    answer = with_token(ada, "jobs").post(PATH, {"kind": "code", "files": files_of({"a": b""})})
    assert answer.status_code == 403
    assert with_token(ada, "data").post(PATH, {"kind": "code", "files": files_of({"a": b""})}).status_code == 201


def test_the_same_request_with_the_same_key_begins_one_upload(ada, signed_in):
    client, body = signed_in(ada), {"kind": "code", "files": files_of({"a": b"123"})}
    first = client.post(PATH, body, headers={"Idempotency-Key": "k"})
    second = client.post(PATH, body, headers={"Idempotency-Key": "k"})
    assert first.json()["id"] == second.json()["id"]
    assert storage_used(namespace_for(ada, None)).reserved == 3


def test_the_list_of_uploads_takes_few_queries_however_many_there_are(ada, signed_in, django_assert_max_num_queries):
    client = signed_in(ada)
    for number in range(20):
        begin(client, {f"f{number}": b"1"})
    with django_assert_max_num_queries(8):
        answer = client.get(PATH)
    assert len(answer.json()["results"]) == 20


# --- Quota


def _quota(user, storage: int | None) -> Namespace:
    namespace = namespace_for(user, None)
    quota = quota_of(namespace)
    quota.storage = storage
    quota.save()
    return namespace


def test_what_does_not_fit_is_refused_with_the_numbers(ada, signed_in):
    namespace = _quota(ada, 100)
    client = signed_in(ada)
    begin(client, {"a": b"x" * 60})
    answer = client.post(PATH, {"kind": "code", "files": files_of({"b": b"x" * 41})})
    assert answer.status_code == 409
    problem = answer.json()
    assert problem["code"] == "quota_full"
    numbers = {error["field"]: error["value"] for error in problem["errors"]}
    assert numbers == {
        "storage.needed": "41",
        "storage.unused": "40",
        "storage.hard": "100",
        "storage.used": "0",
        "storage.reserved": "60",
    }
    assert problem["remedy"]
    assert storage_used(namespace).reserved == 60
    assert Upload.objects.count() == 1


def test_the_last_byte_of_the_quota_can_be_used(ada, signed_in):
    namespace = _quota(ada, 100)
    begin(signed_in(ada), {"a": b"x" * 100})
    assert storage_used(namespace).reserved == 100


def test_a_quota_lowered_below_what_is_used_refuses_only_more(ada):
    namespace = _quota(ada, 100)
    upload_begin(namespace=namespace, actor=ada, kind="code", files=[ListedFile("a", 90)])
    _quota(ada, 50)
    with pytest.raises(QuotaExceeded):
        upload_begin(namespace=namespace, actor=ada, kind="code", files=[ListedFile("b", 1)])


def test_aborting_returns_the_quota(ada, signed_in):
    namespace = _quota(ada, 100)
    client = signed_in(ada)
    upload = begin(client, {"a": b"x" * 100})["id"]
    assert client.delete(f"{PATH}{upload}/").status_code == 204
    assert client.delete(f"{PATH}{upload}/").status_code == 404
    assert (storage_used(namespace).reserved, storage_used(namespace).used) == (0, 0)
    begin(client, {"a": b"x" * 100})
