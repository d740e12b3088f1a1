"""Files that a portal of before kept as rows are found in the manifests, in whatever state their upload was."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from apps.uploads.file_blocks import files_at, manifest_of
from apps.uploads.manifest import sent_files
from apps.uploads.models import Upload
from portal.env import sqlite as database_of
from tests.real.old_migrations import old_executor
from tests.real.postgres import default_database, running_cluster
from yardmaster.storage.file_list import ListedFile

BEFORE = [("uploads", "0001_initial"), ("datasets", "0001_initial"), ("code", "0001_initial")]
HASH, OTHER = "a" * 64, "b" * 64


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def before(request, tmp_path, django_db_blocker) -> Iterator[Any]:
    """The models as they were, in a database of their own as it was."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            config = database_of(str(tmp_path / "old.sqlite3"))
        else:
            cluster = stack.enter_context(running_cluster())
            cluster.create("old")
            config = cluster.settings("old")
        stack.enter_context(django_db_blocker.unblock())
        stack.enter_context(default_database(config))
        executor = old_executor()
        targets = [
            *BEFORE,
            *(one for one in executor.loader.graph.leaf_nodes() if one[0] in ("namespaces", "accounts")),
        ]
        executor.migrate(targets)
        yield executor.loader.project_state(targets).apps


def _upload(apps: Any, namespace: Any, state: str, **more: Any) -> Any:
    now = timezone.now()
    return apps.get_model("uploads", "Upload").objects.create(
        id=uuid.uuid4(), target_id=uuid.uuid4(), key_prefix=f"datasets/{uuid.uuid4()}", namespace=namespace,
        kind="dataset", part_size=8 << 20, file_count=2, held=2, state=state, created_at=now, touched_at=now, **more,
    )  # fmt: skip


def _version(apps: Any, app: str, namespace: Any, upload: Any) -> Any:
    name = app.removesuffix("s").capitalize()
    parent = apps.get_model(app, name).objects.create(id=uuid.uuid4(), namespace=namespace, name="it")
    return apps.get_model(app, f"{name}Version").objects.create(
        id=upload.target_id, parent=parent, number=1, upload_id=upload.pk, key_prefix=upload.key_prefix, size=2,
        file_count=2, added=2, changed=0, removed=0,
    )  # fmt: skip


def test_files_move_into_manifests(before):
    namespace = before.get_model("namespaces", "Namespace").objects.create(id=uuid.uuid4(), slug="team")
    rows = before.get_model("uploads", "UploadFile").objects
    underway, complete, used, code = (
        _upload(before, namespace, state, used=state == "used")
        for state in ("open", "complete", "complete", "complete")
    )
    for index in range(1200):
        begun, found = ("m" if index % 2 else "", HASH if index == 3 else "")
        rows.create(
            upload=underway, index=index, path=f"f{index}", size=1, declared_sha256=OTHER, multipart_id=begun,
            sha256=found,
        )  # fmt: skip
    rows.create(upload=complete, index=0, path="z", size=1, sha256=HASH, records=7, fault="bad")
    rows.create(upload=complete, index=1, path="a", size=1, declared_sha256=OTHER, sha256=OTHER)
    dataset = _version(before, "datasets", namespace, used)
    before.get_model("datasets", "DatasetFile").objects.create(
        version=dataset, path="d", size=2, sha256=HASH, records=9
    )
    before.get_model("code", "CodeFile").objects.create(
        version=_version(before, "code", namespace, code), path="train.py", size=2, sha256=HASH
    )
    MigrationExecutor(connection).migrate(MigrationExecutor(connection).loader.graph.leaf_nodes())
    sent = sent_files(underway.pk, range(1200))
    assert [one.path for one in sent.values()] == [f"f{index}" for index in range(1200)]
    assert (sent[3].sha256, sent[3].multipart_id, sent[3].declared) == (HASH, "m", OTHER)
    assert (sent[1198].multipart_id, sent[1199].multipart_id) == ("", "m")
    assert list(manifest_of(complete.pk)) == [
        ListedFile("a", 1, OTHER, OTHER), ListedFile("z", 1, "", HASH, 7, "bad")
    ]  # fmt: skip
    assert set(files_at(complete.pk, {"a", "b", "z"})) == {"a", "z"}
    assert list(manifest_of(used.pk)) == [ListedFile("d", 2, "", HASH, 9)]
    assert list(manifest_of(code.pk)) == [ListedFile("train.py", 2, "", HASH)]
    assert not Upload.objects.get(pk=underway.pk).is_sorted
