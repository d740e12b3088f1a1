"""Datasets over the API: made of uploads, versioned, read, deleted."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client

from apps.audit.models import AuditEvent
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.selectors import DATASETS
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.versioned.models import versions_deleting
from apps.uploads.versioned.selectors import files_of, version_for
from tests.integration.sending import begin, sha256, tfrecord, uploaded

PATH = "/api/v1/datasets/"
CONTENT = {"train/a.csv": b"x,y\n1,2\n3,4\n", "b.tfrecord": tfrecord(b"1", b"2", b"3"), "c.bin": b"\0\1"}


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def make(client, name="digits", content=CONTENT, **more):
    answer = client.post(PATH, {"name": name, "upload": uploaded(client, content)} | more)
    assert answer.status_code == 201, answer.json()
    return answer.json()


def add(client, dataset, content, **more):
    answer = client.post(f"{PATH}{dataset['id']}/versions/", {"upload": uploaded(client, content)} | more)
    assert answer.status_code == 201, answer.json()
    return answer.json()


def test_a_dataset_is_made_of_a_complete_upload(ada, client):
    dataset = make(client, description="handwritten")
    assert (dataset["name"], dataset["description"], dataset["created_by"]) == ("digits", "handwritten", "ada")
    latest = dataset["latest"]
    assert (latest["number"], latest["files"], latest["size"]) == (1, 3, sum(map(len, CONTENT.values())))
    assert (latest["records"], latest["problems"]) == (5, [])
    assert (latest["added"], latest["changed"], latest["removed"]) == (3, 0, 0)
    assert client.get(f"{PATH}{dataset['id']}/").json() == dataset
    version = version_for(DATASETS, ada, uuid.UUID(latest["id"]))
    assert version.key_prefix == f"namespaces/{version.parent.namespace_id}/datasets/{version.pk}"
    assert [(file.path, file.sha256, file.key) for file in files_of(version)] == [
        (path, sha256(data), f"{version.key_prefix}/{path}") for path, data in sorted(CONTENT.items())
    ]


def test_damage_is_told_with_the_version(client):
    dataset = make(client, content={"ok.csv": b"1,2\n", "bad.tfrecord": tfrecord(b"one", b"two")[:-1]})
    assert dataset["latest"]["problems"] == [
        {"path": "bad.tfrecord", "fault": "record 1 at byte 19: the file ends 1 bytes too early"}
    ]


def test_an_upload_becomes_one_version_only(client):
    upload = uploaded(client, CONTENT)
    assert client.post(PATH, {"name": "a", "upload": upload}).status_code == 201
    answer = client.post(PATH, {"name": "b", "upload": upload})
    assert (answer.status_code, answer.json()["code"]) == (409, "upload_used")
    assert Dataset.objects.count() == 1


def test_an_open_upload_or_one_of_code_becomes_no_dataset(client):
    answer = client.post(PATH, {"name": "a", "upload": begin(client, CONTENT)["id"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "upload_not_complete")
    answer = client.post(PATH, {"name": "a", "upload": uploaded(client, CONTENT, "code")})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "upload")
    assert client.post(PATH, {"name": "a", "upload": str(uuid.uuid4())}).status_code == 404
    assert not Dataset.objects.exists()


def test_a_taken_name_is_refused_and_the_upload_can_still_be_used(client):
    make(client, "digits")
    upload = uploaded(client, CONTENT)
    answer = client.post(PATH, {"name": "digits", "upload": upload})
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
    assert client.post(PATH, {"name": "other", "upload": upload}).status_code == 201


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "a\u202eb", None])
def test_a_name_that_is_none_is_refused(client, name):
    answer = client.post(PATH, {"name": name, "upload": uploaded(client, CONTENT)})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "name")


def test_versions_are_numbered_and_say_what_changed(client):
    dataset = make(client)
    content = CONTENT | {"c.bin": b"other", "new": b""}
    del content["b.tfrecord"]
    version = add(client, dataset, content, note="better")
    assert (version["number"], version["note"], version["dataset"]) == (2, "better", dataset["id"])
    assert (version["added"], version["changed"], version["removed"]) == (1, 1, 1)
    numbers = [one["number"] for one in client.get(f"{PATH}{dataset['id']}/versions/").json()["results"]]
    assert numbers == [2, 1]
    assert client.get(f"{PATH}{dataset['id']}/").json()["latest"] == version
    assert client.get(f"/api/v1/dataset-versions/{version['id']}/").json() == version


def test_the_number_of_a_deleted_version_is_not_given_again(client):
    dataset = make(client)
    second = add(client, dataset, CONTENT)
    assert client.delete(f"/api/v1/dataset-versions/{second['id']}/").status_code == 204
    assert client.get(f"{PATH}{dataset['id']}/").json()["latest"]["number"] == 1
    assert add(client, dataset, CONTENT)["number"] == 3


def test_a_dataset_is_renamed_and_described(client):
    dataset, other = make(client), make(client, "other")
    address = f"{PATH}{dataset['id']}/"
    assert client.patch(address, {"name": "new", "description": "d"}).json()["name"] == "new"
    assert client.patch(address, {"name": other["name"]}).json()["code"] == "name_taken"
    assert client.patch(address, {"latest": 1}).status_code == 400
    assert client.get(address).json()["description"] == "d"


def test_deleting_returns_the_quota_and_removes_the_bytes(ada, client, tmp_path, django_capture_on_commit_callbacks):
    dataset = make(client)
    add(client, dataset, {"x": b"123"})
    with django_capture_on_commit_callbacks(execute=True):
        assert client.delete(f"{PATH}{dataset['id']}/").status_code == 204
    assert client.get(f"{PATH}{dataset['id']}/").status_code == 404
    assert storage_used(namespace_for(ada, None)).used == 0
    assert not Upload.objects.exists()
    assert not DatasetVersion.objects.exists()
    assert [path for path in (tmp_path / "objects").rglob("*") if path.is_file()] == []


def test_what_an_unfinished_job_uses_is_not_deleted(client, request):
    dataset = make(client)

    def needed(*, version_ids, **_):
        return {one for one in version_ids if str(one) == dataset["latest"]["id"]}

    versions_deleting.connect(needed)
    request.addfinalizer(lambda: versions_deleting.disconnect(needed))
    for address in (f"{PATH}{dataset['id']}/", f"/api/v1/dataset-versions/{dataset['latest']['id']}/"):
        answer = client.delete(address)
        assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
        assert answer.json()["remedy"]
    assert client.get(f"{PATH}{dataset['id']}/").status_code == 200


def test_changes_are_recorded(ada, client):
    dataset = make(client)
    add(client, dataset, CONTENT)
    client.delete(f"{PATH}{dataset['id']}/")
    actions = AuditEvent.objects.filter(subject__startswith="dataset").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["dataset.create", "dataset_version.create", "dataset.delete"]


def test_the_same_request_with_the_same_key_makes_one_dataset(client):
    body = {"name": "a", "upload": uploaded(client, CONTENT)}
    first = client.post(PATH, body, headers={"Idempotency-Key": "k"})
    second = client.post(PATH, body, headers={"Idempotency-Key": "k"})
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]


# --- Lists


def test_lists_are_filtered_by_namespace_and_name(ada, client):
    team = Namespace.objects.create(slug="team")
    Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    make(client, "Cats")
    upload = uploaded(client, CONTENT, namespace="team")
    assert client.post(PATH, {"name": "dogs", "upload": upload}).json()["namespace_slug"] == "team"

    def names(query: str) -> list[str]:
        return [one["name"] for one in client.get(f"{PATH}?{query}").json()["results"]]

    assert names("") == ["dogs", "Cats"]
    assert names("namespace=team") == ["dogs"]
    assert names("search=CAT") == ["Cats"]
    assert names("search=%25") == []
    assert client.get(f"{PATH}?namespace=foreign").status_code == 404


def test_an_upload_of_one_namespace_becomes_no_dataset_of_another(ada, client):
    team = Namespace.objects.create(slug="team")
    Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    answer = client.post(PATH, {"name": "a", "namespace": "team", "upload": uploaded(client, CONTENT)})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "upload")


@pytest.mark.long
def test_a_list_takes_few_queries_however_long_it_is(client, django_assert_max_num_queries):
    for number in range(12):
        dataset = make(client, f"d{number}", {"x": b"1"})
        add(client, dataset, {"x": b"2"})
    with django_assert_max_num_queries(8):
        results = client.get(PATH).json()["results"]
    assert [one["latest"]["number"] for one in results] == [2] * 12


# --- Others


def test_viewers_read_and_members_write(ada, bob, signed_in):
    team = Namespace.objects.create(slug="team")
    Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    member, viewer = signed_in(ada), signed_in(bob)
    dataset = member.post(PATH, {"name": "d", "upload": uploaded(member, CONTENT, namespace="team")}).json()
    version = dataset["latest"]["id"]
    for address in (
        f"{PATH}{dataset['id']}/", f"{PATH}{dataset['id']}/versions/", f"/api/v1/dataset-versions/{version}/",
        f"/api/v1/dataset-versions/{version}/files/", f"/api/v1/dataset-versions/{version}/preview/?path=c.bin",
        f"/api/v1/dataset-versions/{version}/check/",
    ):  # fmt: skip
        assert viewer.get(address).status_code == 200
    assert viewer.patch(f"{PATH}{dataset['id']}/", {"name": "x"}).status_code == 403
    assert viewer.delete(f"{PATH}{dataset['id']}/").status_code == 403
    assert viewer.delete(f"/api/v1/dataset-versions/{version}/").status_code == 403


def test_a_foreign_dataset_is_a_404_at_every_address(bob, client, signed_in):
    dataset = make(client)
    version = dataset["latest"]["id"]
    stranger = signed_in(bob)
    below = ["", "files/", "files/content/?path=c.bin", "preview/?path=c.bin", "check/"]
    for address in (
        f"{PATH}{dataset['id']}/", f"{PATH}{dataset['id']}/versions/",
        *[f"/api/v1/dataset-versions/{version}/{one}" for one in below],
    ):  # fmt: skip
        assert stranger.get(address).status_code == 404
    assert stranger.delete(f"{PATH}{dataset['id']}/").status_code == 404
    assert stranger.patch(f"{PATH}{dataset['id']}/", {}).status_code == 404
    assert stranger.get(PATH).json()["results"] == []
    upload = uploaded(client, CONTENT)
    assert stranger.post(PATH, {"name": "stolen", "upload": upload}).status_code == 404


# --- Files


def test_files_are_listed_by_path_in_pages(client):
    content = {f"f{number:03}": b"x" * number for number in range(25)}
    version = make(client, content=content)["latest"]["id"]
    address, found = f"/api/v1/dataset-versions/{version}/files/?page_size=10", []
    while address:
        page = client.get(address).json()
        found += [one["path"] for one in page["results"]]
        address = page["next"]
        back = page["previous"]
    assert found == sorted(content)
    page = client.get(back).json()
    assert [one["path"] for one in page["results"]] == sorted(content)[10:20]
    page = client.get(page["previous"]).json()
    assert [one["path"] for one in page["results"]] == sorted(content)[:10]
    assert page["previous"] is None


@pytest.mark.parametrize(
    "query", ["cursor=x", "cursor=%00", "cursor=bg==x", "page_size=0", "page_size=x", "page_size=1001"]
)
def test_a_bad_page_is_refused(client, query):
    version = make(client)["latest"]["id"]
    assert client.get(f"/api/v1/dataset-versions/{version}/files/?{query}").status_code == 400


def test_a_file_is_downloaded_by_a_redirect(client):
    version = make(client)["latest"]["id"]
    answer = client.get(f"/api/v1/dataset-versions/{version}/files/content/?path=train/a.csv")
    assert answer.status_code == 302
    body = Client().get(answer.headers["Location"].partition(":8080")[2])
    assert b"".join(body.streaming_content) == CONTENT["train/a.csv"]
    assert "a.csv" in body.headers["Content-Disposition"]


def test_files_are_listed_with_addresses_of_their_content(client, ada):
    version = make(client)["latest"]["id"]
    address = f"/api/v1/dataset-versions/{version}/files/"
    assert {one["url"] for one in client.get(address).json()["results"]} == {None}
    before = AuditEvent.objects.filter(action="dataset.download").count()
    for one in client.get(f"{address}?addresses=1").json()["results"]:
        body = Client().get(one["url"].partition(":8080")[2])
        assert b"".join(body.streaming_content) == CONTENT[one["path"]]
    assert AuditEvent.objects.filter(action="dataset.download").count() == before + 1


@pytest.mark.parametrize("path", ["", "nothing", "train", "train/", "../x", "train/../c.bin", "C.BIN", "%00"])
def test_a_path_that_is_not_in_the_version_is_not_found(client, path):
    version = make(client)["latest"]["id"]
    for what in ("files/content/", "preview/"):
        assert client.get(f"/api/v1/dataset-versions/{version}/{what}?path={path}").status_code in (400, 404)
