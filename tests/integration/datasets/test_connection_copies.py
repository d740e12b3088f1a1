"""Copies from data connections into datasets: asked for, carried out, failed, cancelled. No cluster is asked here."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.datasets import connection_copying
from apps.datasets.connection_copies import AT_ONCE
from apps.datasets.connection_copying import copies_sweep, copy_in_turn, copy_next, copy_run
from apps.datasets.models import ConnectionCopy, Dataset, DatasetVersion
from apps.namespaces.models import Membership, Namespace, Quota, Role
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.versioned.selectors import files_in
from yardmaster.errors import Problem
from yardmaster.ignite.copying import Copied, CopyWanted
from yardmaster.ignite.nodes import ignite_policy
from yardmaster.ignite.refusals import NotLooked

pytestmark = pytest.mark.django_db
SHARD = bytes(range(256)) * 40


@pytest.fixture
def mine(ada, store, settings, with_token) -> Namespace:
    settings.YARDMASTER_IGNITE_POLICY = ignite_policy(["127.0.0.1"], ["1-65535"])
    namespace = Namespace.objects.get(owner=ada)
    made = with_token(ada).put(f"/api/v1/namespaces/{namespace.pk}/connections/cats/", {"hosts": "one.example.org"})
    assert made.status_code == 201, made.json()
    return namespace


@pytest.fixture
def process(monkeypatch) -> list[CopyWanted]:
    """In the place of the process with limits: writes one shard, and waits for nothing."""
    asked: list[CopyWanted] = []

    def copied(wanted, policy, folder: Path, stop) -> Copied:
        asked.append(wanted)
        (folder / "data" / "train").mkdir(parents=True)
        (folder / "progress").write_bytes(b"%20d %20d" % (7, 900))
        files = {"train/train-00000.tfrecord": SHARD, "dataset.json": b"{}"}
        for path, content in files.items():
            (folder / "data" / path).write_bytes(content)
        return Copied(1_234, {path: folder / "data" / path for path in files})

    monkeypatch.setattr(connection_copying, "copied", copied)
    monkeypatch.setattr(connection_copying, "_LOOK", 0.01)
    return asked


def address(namespace: Namespace, rest: str = "", name: str = "cats") -> str:
    return f"/api/v1/namespaces/{namespace.pk}/connections/{name}/copies/{rest}"


def ask(client, namespace: Namespace, **body):
    return client.post(address(namespace), {"dataset": "kittens", "cache": "IMAGES"} | body)


def test_a_copy_becomes_the_next_version_and_counts_against_the_quota(ada, mine, with_token, process) -> None:
    client = with_token(ada)
    for number in (1, 2):
        begun = ask(client, mine)
        assert (begun.status_code, begun.json()["state"]) == (202, "copying"), begun.json()
        copy_run(uuid.UUID(begun.json()["id"]))
        found = client.get(address(mine, f"{begun.json()['id']}/")).json()
        assert (found["state"], found["rows"], found["problem"]) == ("ready", 1_234, None), found
        version = DatasetVersion.objects.select_related("parent").get(pk=found["dataset_version"])
        assert (version.parent.name, version.number, version.created_by) == ("kittens", number, ada)
        assert version.note == "1,234 rows of the cache IMAGES of the data connection cats."
    assert sorted(one.path for one in files_in(version)) == ["dataset.json", "train/train-00000.tfrecord"]
    used = storage_used(mine)
    assert (used.used, used.reserved) == (2 * (len(SHARD) + 2), 0)
    assert [one["state"] for one in client.get(address(mine)).json()["results"]] == ["ready", "ready"]
    assert AuditEvent.objects.filter(action="connection.copy").count() == 2
    assert [(one.cache, one.query) for one in process] == [("IMAGES", "")] * 2


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"query": "SELECT 1"}, "cache", "conflict"),
        ({"cache": ""}, "cache", "missing"),
        ({"dataset": "a\u0007"}, "dataset", "invalid"),
        ({"cache": "a\u0007"}, "cache", "invalid"),
    ],
)
def test_bad_copies_are_named_by_their_field(ada, mine, with_token, body, field, code) -> None:
    answer = ask(with_token(ada), mine, **body)
    assert answer.status_code == 400
    assert (field, code) in [(one["field"], one["code"]) for one in answer.json()["errors"]]
    assert not ConnectionCopy.objects.exists()


def test_members_copy_viewers_see_and_others_see_nothing(ada, bob, mine, with_token) -> None:
    made = ask(with_token(ada), mine).json()
    client = with_token(bob)
    assert client.get(address(mine)).status_code == 404
    Membership.objects.create(namespace=mine, user=bob, role=Role.VIEWER)
    assert client.get(address(mine, f"{made['id']}/")).status_code == 200
    assert ask(client, mine).status_code == 403
    assert client.post(address(mine, f"{made['id']}/cancel/")).status_code == 403
    assert with_token(ada).get(address(mine, f"{uuid.uuid4()}/")).status_code == 404


def test_the_same_key_copies_once_and_a_namespace_has_few_at_once(ada, mine, with_token) -> None:
    client, body = with_token(ada), {"dataset": "kittens", "cache": "IMAGES"}
    both = [client.post(address(mine), body, headers={"Idempotency-Key": "one"}).json()["id"] for _ in range(2)]
    assert both[0] == both[1]
    answers = [ask(client, mine) for _ in range(AT_ONCE)]
    assert (answers[-1].status_code, answers[-1].json()["code"]) == (409, "too_many_copies")


def test_a_copy_that_fails_says_why_and_leaves_nothing(ada, mine, with_token, process, monkeypatch) -> None:
    client = with_token(ada)

    def refuse(*_: object) -> Copied:
        raise NotLooked(Problem("cache", "ignite_cache", "There is no cache 'IMAGES'.", "Copy the name.", "one"))

    monkeypatch.setattr(connection_copying, "copied", refuse)
    found = failed(client, mine)
    assert (found["problem"]["code"], found["problem"]["errors"][0]["field"]) == ("ignite_cache", "cache")

    def too_large(*_: object) -> Copied:
        raise NotLooked(Problem("dataset", "dataset_too_large", "Too large.", "Copy less.", ""))

    monkeypatch.setattr(connection_copying, "copied", too_large)
    Quota.objects.update_or_create(namespace=mine, defaults={"storage": 1_000})
    assert failed(client, mine)["problem"]["code"] == "quota_full"
    assert not Dataset.objects.exists()
    assert not Upload.objects.exists()
    assert storage_used(mine).reserved == 0


def test_files_beyond_the_quota_leave_nothing(ada, mine, with_token, process) -> None:
    Quota.objects.update_or_create(namespace=mine, defaults={"storage": 1_000})
    assert failed(with_token(ada), mine)["problem"]["code"] == "quota_full"
    assert not Dataset.objects.exists()
    assert (storage_used(mine).used, storage_used(mine).reserved) == (0, 0)


def test_namespaces_take_turns_and_what_is_cancelled_is_still_removed(ada, bob, mine) -> None:
    now = timezone.now()
    other = Namespace.objects.get(owner=bob)

    def copy(namespace: Namespace, minutes_ago: int, **also) -> ConnectionCopy:
        return ConnectionCopy.objects.create(
            namespace=namespace, connection="cats", cache="IMAGES", dataset="kittens", asked_by=ada,
            started_at=now - timedelta(minutes=minutes_ago), **also,
        )  # fmt: skip

    assert copy_in_turn(now) is None
    copy(mine, 90, state=ConnectionCopy.State.FAILED, ended_at=now)
    first, second, late = copy(mine, 60), copy(mine, 50), copy(other, 1)
    assert copy_in_turn(now) == late.pk, "the last one of the other namespace ended longer ago"
    ConnectionCopy.objects.filter(pk=late.pk).update(held_until=now + timedelta(minutes=1))
    assert copy_in_turn(now) == first.pk
    ConnectionCopy.objects.filter(pk=first.pk).update(held_until=now + timedelta(minutes=1))
    assert copy_in_turn(now) == second.pk
    left = copy(mine, 10, state=ConnectionCopy.State.CANCELLED, ended_at=now, upload_id=uuid.uuid4())
    copy_next(left.pk)
    left.refresh_from_db()
    assert left.upload_id is None


def failed(client, namespace: Namespace) -> dict:
    begun = ask(client, namespace).json()
    copy_run(uuid.UUID(begun["id"]))
    found = client.get(address(namespace, f"{begun['id']}/")).json()
    assert (found["state"], found["dataset_version"]) == ("failed", None)
    return found


def test_a_cancelled_copy_ends_its_process_and_leaves_nothing(ada, mine, with_token, process, monkeypatch) -> None:
    client = with_token(ada)
    begun = ask(client, mine).json()
    stopped: list[bool] = []

    def wait(wanted, policy, folder, stop) -> Copied:
        stopped.append(stop.wait(20))
        raise NotLooked(Problem("query", "ignite_too_costly", "Killed.", "", ""))

    def cancelling(folder: Path) -> tuple[int, int]:
        client.post(address(mine, f"{begun['id']}/cancel/"))
        return 7, 900

    monkeypatch.setattr(connection_copying, "copied", wait)
    monkeypatch.setattr(connection_copying, "progress", cancelling)
    copy_run(uuid.UUID(begun["id"]))
    found = client.get(address(mine, f"{begun['id']}/")).json()
    assert (found["state"], found["problem"], stopped) == ("cancelled", None, [True])
    assert AuditEvent.objects.filter(action="connection.copy_cancel").count() == 1
    assert not Upload.objects.exists()
    again = client.post(address(mine, f"{begun['id']}/cancel/")).json()
    assert (again["state"], again["ended_at"]) == ("cancelled", found["ended_at"])


def test_a_worker_that_ended_is_replaced_and_what_it_stored_is_removed(ada, mine, with_token, process, monkeypatch):
    client = with_token(ada)
    begun = uuid.UUID(ask(client, mine).json()["id"])
    woken: list = []
    monkeypatch.setattr(connection_copying, "enqueue", lambda message, subject: woken.append(subject))
    now = timezone.now()
    ConnectionCopy.objects.update(holder="another", held_until=now + timedelta(minutes=1))
    copies_sweep(now)
    copy_run(begun)
    assert (woken, process) == ([], [])
    copies_sweep(now + timedelta(minutes=2))
    assert woken == [begun]
    ConnectionCopy.objects.update(held_until=now, tries=connection_copying.TRIES)
    copy_run(begun)
    assert client.get(address(mine, f"{begun}/")).json()["problem"]["code"] == "ignite_interrupted"


def test_a_member_who_left_and_a_deleted_connection_are_told(ada, bob, mine, with_token, process) -> None:
    membership = Membership.objects.create(namespace=mine, user=bob, role=Role.MEMBER)
    begun = ask(with_token(bob), mine).json()
    membership.delete()
    copy_run(uuid.UUID(begun["id"]))
    assert ConnectionCopy.objects.get(pk=begun["id"]).problem["code"] == "user_gone"
    begun = ask(with_token(ada), mine).json()
    assert with_token(ada).delete(address(mine).removesuffix("copies/")).status_code == 204
    copy_run(uuid.UUID(begun["id"]))
    assert ConnectionCopy.objects.get(pk=begun["id"]).problem["code"] == "connection_missing"
    assert process == []


def test_the_page_of_a_connection_copies_shows_and_cancels(client, ada, mine, process) -> None:
    client.force_login(ada)
    page = f"/namespaces/{mine.pk}/connections/cats/"
    for name in ("kittens", "cats"):
        assert client.post(f"{page}copy/", {"query": "SELECT 1 AS ONE", "dataset": name}).url == page
    second, first = ConnectionCopy.objects.order_by("-started_at")
    assert b"0 rows copied so far" in client.get(page).content
    copy_run(first.pk)
    client.post(f"{page}copies/{second.pk}/cancel/")
    part = client.get(page, headers={"HX-Target": "connection-copies"}).content.decode()
    for word in ("SELECT 1 AS ONE", "kittens</bdi>@1", "1,234 rows", "Cancelled"):
        assert word in part, word
    assert "<html" not in part
    wrong = client.post(f"{page}copy/", {"dataset": "kittens"}, follow=True).content.decode()
    assert "A copy needs either a cache or a query" in wrong
