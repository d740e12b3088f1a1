"""The pages of datasets: what they show, to whom, and in how many queries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest
from django.urls import reverse

from apps.audit.models import AuditEvent
from apps.datasets import pages
from apps.datasets.models import Dataset
from apps.jobs.models import Job, JobInput
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.selectors import quota_of
from apps.stores import storage
from apps.uploads.delivery import LARGE_ARCHIVE
from apps.uploads.models import Upload
from tests.integration.pages.shown import page
from tests.integration.sending import begin, complete, send, tfrecord, uploaded

pytestmark = pytest.mark.django_db

HOSTILE = "\"'><script>alert(1)</script> \u05d0\u05d1 🐧 & {{ x }}"


@pytest.fixture(autouse=True)
def _pages_look_to_the_end(monkeypatch):
    """However long this machine stands still meanwhile."""
    monkeypatch.setattr(pages, "_PREVIEW_PATIENCE", 60.0)
    monkeypatch.setattr(pages, "_COMPARE_PATIENCE", 60.0)


def int64_feature(name: str, *values: int) -> bytes:
    """One entry of a `tf.train.Features` map, written by hand."""
    packed = bytes(values)
    int64_list = b"\x0a" + bytes([len(packed)]) + packed
    feature = b"\x1a" + bytes([len(int64_list)]) + int64_list
    key = name.encode()
    entry = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(feature)]) + feature
    return b"\x0a" + bytes([len(entry)]) + entry


def example(*features: bytes) -> bytes:
    body = b"".join(features)
    return b"\x0a" + bytes([len(body)]) + body


DIGITS = {
    "train.tfrecord": tfrecord(*(example(int64_feature("label", n % 3)) for n in range(30))),
    "readme.txt": b"What this is <b>for</b>",
    "table.csv": b"species,Bill mm\nAdelie,39\n",
}


def make(api, name: str = "digits", content: Mapping[str, bytes] = DIGITS, **more) -> Dataset:
    answer = api.post("/api/v1/datasets/", {"name": name, "upload": uploaded(api, content)} | more)
    assert answer.status_code == 201, answer.json()
    return Dataset.objects.get(pk=answer.json()["id"])


def add_version(api, dataset: Dataset, content: Mapping[str, bytes], note: str = "") -> None:
    body = {"upload": uploaded(api, content), "note": note}
    assert api.post(f"/api/v1/datasets/{dataset.pk}/versions/", body).status_code == 201


def test_an_empty_list_says_what_to_do_and_the_command_for_it(web):
    text = page(web, "datasets_page")
    assert reverse("dataset_upload_page") in text
    assert "yardmaster datasets upload" in text


def test_the_list_names_the_newest_version_its_size_and_its_maker(web, api):
    dataset = make(api)
    add_version(api, dataset, {"a.csv": b"x\n1\n"})
    text = page(web, "datasets_page")
    assert reverse("dataset_page", args=[dataset.pk]) in text
    assert "@2" in text
    assert ">ada<" in text
    assert f"dataset_version={dataset.versions.get(number=2).pk}" in text


def test_the_list_is_searched_by_the_address(web, api):
    make(api, "digits")
    make(api, "flowers")
    text = page(web, "datasets_page", search="FLOW")
    assert "flowers" in text
    assert ">digits<" not in text
    assert "No matches" in page(web, "datasets_page", search="x" * 5_000)


def test_the_list_has_pages_in_both_directions(web, api):
    for number in range(52):
        Dataset.objects.create(namespace=Namespace.objects.get(owner__username="ada"), name=f"set-{number:02}")
    first = page(web, "datasets_page")
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older
    assert "set-01" not in first
    second = web.get(reverse("datasets_page") + older[1].replace("&amp;", "&")).content.decode()
    assert "set-01" in second
    assert 'rel="prev"' in second


def test_the_list_takes_few_queries_however_long_it_is(web, api, django_assert_max_num_queries):
    for number in range(5):
        add_version(api, make(api, f"set-{number}"), {"a": b"1"})
    with django_assert_max_num_queries(8):
        page(web, "datasets_page")


def test_a_dataset_shows_versions_files_records_and_what_is_in_them(web, api):
    dataset = make(api)
    add_version(api, dataset, DIGITS | {"readme.txt": b"other", "new.txt": b"n"}, note="More of it")
    text = page(web, "dataset_page", dataset.pk)
    assert "More of it" in text
    assert "1 added" in text
    assert "1 changed" in text
    assert "train.tfrecord" in text
    assert "of all 30 records" in text
    assert text.count('class="class-bar"') == 3
    assert "33.3 %" in text


def test_an_older_version_says_so(web, api):
    dataset = make(api)
    add_version(api, dataset, {"a": b"1"})
    assert "You are viewing version 1." in page(web, "dataset_page", dataset.pk, version=1)
    assert "You are viewing version" not in page(web, "dataset_page", dataset.pk)


def test_a_chosen_file_is_previewed_as_what_it_is(web, api):
    dataset = make(api)
    assert "What this is &lt;b&gt;for&lt;/b&gt;" in page(web, "dataset_page", dataset.pk, path="readme.txt")
    assert ">Bill mm<" in page(web, "dataset_page", dataset.pk, path="table.csv")


def test_pictures_are_loaded_from_short_lived_addresses_of_this_origin(web, api):
    png = b"\x89PNG\r\n\x1a\n" + b"0" * 50
    dataset = make(api, content={f"rose/{n}.png": png for n in range(3)})
    text = page(web, "dataset_page", dataset.pk, view="pictures")
    sources = re.findall(r'<img src="(/storage/[^"]+)"', text)
    assert len(sources) == 4  # one of them large
    answer = web.get(sources[1].replace("&amp;", "&"))
    assert answer.headers["Content-Type"] == "image/png"


def test_damage_is_told_above_everything(web, api):
    whole = DIGITS["train.tfrecord"]
    dataset = make(api, content={"train.tfrecord": whole[:40] + b"\xff\xff" + whole[42:]})
    text = page(web, "dataset_page", dataset.pk)
    assert "1 damaged file" in text
    assert "1 damaged file" in page(web, "datasets_page")


def test_files_are_found_by_a_part_of_their_path_and_paged(web, api):
    dataset = make(api, content={f"part-{n:03}": b"x" for n in range(60)})
    first = page(web, "dataset_page", dataset.pk)
    assert "part-049" in first
    assert "part-050" not in first
    after = re.search(r'rel="next" href="([^"]+)"', first)
    assert after
    following = web.get(reverse("dataset_page", args=[dataset.pk]) + after[1].replace("&amp;", "&"))
    assert "part-050" in following.content.decode()
    assert "part-058" in page(web, "dataset_page", dataset.pk, find="058")


def test_a_file_that_the_store_lost_is_named_and_is_no_error(web, api):
    dataset = make(api, content={"a.txt": b"1"})
    storage().delete_prefix(dataset.versions.get().key_prefix)
    assert "missing in the object store" in page(web, "dataset_page", dataset.pk)


def test_a_dataset_page_takes_few_queries(web, api, django_assert_max_num_queries):
    dataset = make(api)
    for _ in range(3):
        add_version(api, dataset, DIGITS | {"n": b"1"})
    with django_assert_max_num_queries(12):
        page(web, "dataset_page", dataset.pk)


def test_what_changed_is_listed_by_path(web, api):
    dataset = make(api, content={"a": b"1", "b": b"1"})
    add_version(api, dataset, {"a": b"2", "c": b"1"})
    text = page(web, "dataset_changes_page", dataset.pk, version=2)
    for words in ("1 added", "1 changed", "1 removed"):
        assert words in text
    assert "No differences" in page(web, "dataset_changes_page", dataset.pk, version=2, since=2)
    assert "Version 1 has no earlier version" in page(web, "dataset_changes_page", dataset.pk, version=1)


def test_checking_goes_on_by_itself_and_ends_with_a_verdict(web, api, monkeypatch):
    monkeypatch.setattr(pages, "_CHECK_PATIENCE", -1.0)
    dataset = make(api, content={"a": b"1", "b": b"2"})
    version = dataset.versions.get()
    address = reverse("dataset_check_page", args=[version.pk])
    assert "Verify" in page(web, "dataset_check_page", version.pk)
    step = web.get(address, {"go": "1"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in step
    assert "1 of 2 files" in step
    following = re.search(r'hx-get="([^"]+)"', step)
    assert following
    last = web.get(following[1].replace("&amp;", "&"), headers={"HX-Request": "true"}).content.decode()
    assert "All 2 files" in last
    assert "hx-trigger" not in last


def test_checking_finds_a_file_that_is_no_longer_what_it_was(web, api):
    dataset = make(api, content={"a": b"1"})
    version = dataset.versions.get()
    storage().put(f"{version.key_prefix}/a", b"other")
    text = page(web, "dataset_check_page", version.pk, go="1")
    assert "1 of 1 file failed the check" in text.replace("files", "file")


def test_renaming_and_describing_and_a_name_that_is_taken_is_remembered(web, api):
    dataset, _ = make(api, "digits"), make(api, "taken")
    address = reverse("dataset_edit_page", args=[dataset.pk])
    refused = web.post(address, {"name": "taken", "description": "typed"})
    assert refused.status_code == 422
    assert "Choose another name" in refused.content.decode()
    assert "typed" in refused.content.decode()
    assert web.post(address, {"name": "numbers", "description": "d"}).status_code == 302
    dataset.refresh_from_db()
    assert (dataset.name, dataset.description) == ("numbers", "d")


def test_deleting_asks_for_the_name(web, api):
    dataset = make(api)
    address = reverse("dataset_delete_page", args=[dataset.pk])
    refused = web.post(address, {"name": "digit"})
    assert refused.status_code == 422
    assert "Nothing was deleted" in refused.content.decode()
    assert Dataset.objects.filter(pk=dataset.pk).exists()
    assert web.post(address, {"name": "digits"}).status_code == 302
    assert not Dataset.objects.filter(pk=dataset.pk).exists()
    assert AuditEvent.objects.filter(action="dataset.delete").exists()


def test_deleting_is_refused_while_a_job_uses_it_and_says_so_on_the_page(web, api, ada):
    dataset = make(api)
    version = dataset.versions.get()
    job = Job.objects.create(
        namespace=ada.personal_namespace, owner=ada, name="j", engine="local", needs={}, queued_at=version.created_at,
        spec={},
    )  # fmt: skip
    JobInput.objects.create(job=job, version=version.pk)
    answer = web.post(reverse("dataset_delete_page", args=[dataset.pk]), {"name": "digits"})
    assert answer.status_code == 409
    assert "unfinished job uses version 1" in answer.content.decode()


def test_one_version_is_deleted_by_its_name_and_number(web, api):
    dataset = make(api)
    add_version(api, dataset, {"a": b"1"})
    address = reverse("dataset_delete_page", args=[dataset.pk]) + "?version=1"
    assert web.post(address, {"name": "digits@1"}).status_code == 302
    assert [one.number for one in dataset.versions.all()] == [2]


def test_a_dataset_without_versions_is_a_page_that_says_what_to_do(web, api):
    dataset = make(api)
    web.post(reverse("dataset_delete_page", args=[dataset.pk]) + "?version=1", {"name": "digits@1"})
    assert "All versions were deleted" in page(web, "dataset_page", dataset.pk)
    assert "All versions were deleted" in page(web, "datasets_page")
    assert "All versions were deleted" in page(web, "dataset_changes_page", dataset.pk)


def test_uploading_shows_the_quota_before_and_the_command(web, ada):
    quota = quota_of(ada.personal_namespace)
    quota.storage = 10 << 30
    quota.save()
    text = page(web, "dataset_upload_page")
    assert f'data-hard="{10 << 30}"' in text
    assert "of 10 GiB" in text
    assert "needs JavaScript" in text
    assert "yardmaster datasets upload ./folder" in text


def test_uploading_a_next_version_names_what_it_belongs_to(web, api):
    dataset = make(api, HOSTILE)
    text = page(web, "dataset_upload_page", dataset.pk)
    assert f'data-item="{dataset.pk}"' in text
    assert "<script>alert" not in text


def test_an_upload_that_was_left_open_is_offered_and_can_be_discarded(web, api):
    """kubeflow/pipelines#5651, mlflow#8539: large data from a browser, over a connection that breaks."""
    upload = begin(api, {"shards/a.bin": b"x" * 100})
    text = page(web, "dataset_upload_page")
    assert f'data-go-on="{upload["id"]}"' in text
    assert "shards/a.bin" in text
    assert f'data-go-on="{upload["id"]}"' not in page(web, "code_upload_page")
    assert web.post(reverse("dataset_upload_page"), {"discard": upload["id"]}).status_code == 302
    assert not Upload.objects.filter(pk=upload["id"]).exists()


def test_an_upload_that_has_become_a_version_is_offered_no_more(web, api):
    content = {"a": b"1"}
    upload = begin(api, content)
    send(api, upload, content)
    complete(api, upload["id"])
    assert upload["id"] in page(web, "dataset_upload_page")
    api.post("/api/v1/datasets/", {"name": "a", "upload": upload["id"]})
    assert upload["id"] not in page(web, "dataset_upload_page")


def test_a_viewer_sees_and_cannot_upload_change_or_delete(web, api, bob, client):
    dataset = make(api)
    Membership.objects.create(namespace=dataset.namespace, user=bob, role=Role.VIEWER)
    client.force_login(bob)
    text = page(client, "dataset_page", dataset.pk)
    assert reverse("dataset_delete_page", args=[dataset.pk]) not in text
    for name in ("dataset_edit_page", "dataset_delete_page", "dataset_upload_page"):
        assert client.get(reverse(name, args=[dataset.pk])).status_code == 403
    assert "You have read-only access" in page(client, "dataset_upload_page", namespace=dataset.namespace.slug)


def test_a_foreign_dataset_is_a_404_on_every_page(api, bob, client):
    dataset = make(api)
    version = dataset.versions.get()
    client.force_login(bob)
    for name in ("dataset_page", "dataset_changes_page", "dataset_edit_page", "dataset_delete_page"):
        assert client.get(reverse(name, args=[dataset.pk])).status_code == 404
    for name in ("dataset_version_page", "dataset_check_page"):
        assert client.get(reverse(name, args=[version.pk])).status_code == 404
    assert "digits" not in page(client, "datasets_page")


@pytest.mark.parametrize("query", ["version=99", "path=nothing"])
def test_an_unknown_version_or_file_is_a_404_page(web, api, query):
    assert web.get(reverse("dataset_page", args=[make(api).pk]) + f"?{query}").status_code == 404


@pytest.mark.parametrize("query", ["version=x", "cursor=%FF", "cursor=bm90", "version=-1", "before=%C2%B2"])
def test_a_query_that_makes_no_sense_is_a_page_that_says_so(web, api, query):
    assert web.get(reverse("dataset_page", args=[make(api).pk]) + f"?{query}").status_code in (200, 400)


def test_a_version_is_reached_by_its_id_alone(web, api):
    dataset = make(api)
    answer = web.get(reverse("dataset_version_page", args=[dataset.versions.get().pk]))
    assert answer.headers["Location"] == reverse("dataset_page", args=[dataset.pk]) + "?version=1"


def test_strangers_are_sent_to_sign_in(client):
    for name in ("datasets_page", "dataset_upload_page"):
        assert client.get(reverse(name)).status_code == 302


def test_hostile_names_paths_and_content_harm_no_page(web, api):
    content = {f"a\"<img src=x onerror=alert(1)>'/{n} \u05d0.csv": b"<script>x</script>,b\n1,2\n" for n in range(2)}
    dataset = make(api, HOSTILE, content, description="<script>alert(2)</script> " + "long " * 1_900)
    add_version(api, dataset, {"b<b>": b"</pre><script>alert(3)</script>"}, note="<script>alert(4)</script>")
    for name, query in [
        ("dataset_page", {}),
        ("dataset_page", {"version": 1}),
        ("dataset_page", {"find": '"><script>'}),
        ("dataset_changes_page", {"version": 2}),
        ("dataset_edit_page", {}),
        ("dataset_delete_page", {}),
    ]:
        text = page(web, name, dataset.pk, **query)
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert " style=" not in text
        assert "<script>x" not in text
    assert "<script>alert" not in page(web, "datasets_page")


def test_what_is_copied_into_a_job_file_is_quoted(web, api):
    dataset = make(api, 'a "quoted": name')
    text = page(web, "dataset_page", dataset.pk)
    wanted = json.dumps('a "quoted": name@1')
    assert wanted.replace('"', "&quot;") in text


def test_all_files_of_a_version_come_as_one_zip(web, api):
    answer = web.get(reverse("dataset_archive", args=[make(api).versions.get().pk]))
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert b"".join(answer.streaming_content).startswith(b"PK")


@pytest.mark.parametrize(("size", "is_named"), [(LARGE_ARCHIVE, False), (LARGE_ARCHIVE + 1, True)])
def test_a_large_version_names_the_command_that_downloads_it_above_its_files(web, api, size, is_named):
    dataset = make(api)
    dataset.versions.update(size=size)
    files = page(web, "dataset_page", dataset.pk).partition('id="files"')[2]
    assert "Download ZIP" in files
    assert ("yardmaster datasets download digits@1" in files.partition("<table")[0]) is is_named
