"""Models that a portal of before kept one by one become numbered versions of the models of their names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from apps.registry.models import Model, ModelUpload, ModelVersion
from apps.uploads.versioned.selectors import files_of
from portal.env import sqlite as database_of
from tests.real.old_migrations import old_executor
from tests.real.postgres import default_database, running_cluster
from yardmaster.storage.file_list import ListedFile, pack

BEFORE = [("registry", "0002_model_of_a_stopped_job"), ("jobs", "0017_outputs"), ("uploads", "0007_output_kind")]
HASH = "a" * 64


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.long])])
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
        leaves = [one for one in executor.loader.graph.leaf_nodes() if one[0] in ("namespaces", "accounts")]
        executor.migrate([*BEFORE, *leaves])
        yield executor.loader.project_state([*BEFORE, *leaves]).apps


def _job(apps: Any, namespace: Any, owner: Any, name: str) -> Any:
    spec = {"code": str(uuid.uuid4()), "arguments": ["--lr=1"], "inputs": [{"dataset_version": "d", "name": "train"}]}
    return apps.get_model("jobs", "Job").objects.create(
        id=uuid.uuid4(), namespace=namespace, owner=owner, name=name, engine="local", spec=spec, needs={},
        queued_at=timezone.now(), strategy="single",
    )  # fmt: skip


def _kept(apps: Any, job: Any, **columns: Any) -> Any:
    now = timezone.now()
    upload = apps.get_model("uploads", "Upload").objects.create(
        id=uuid.uuid4(), target_id=uuid.uuid4(), key_prefix=f"namespaces/n/jobs/{job.pk}/1/model", kind="model",
        namespace=job.namespace, part_size=8 << 20, file_count=1, held=3, state="complete", created_at=now,
        touched_at=now, job_id=job.pk,
    )  # fmt: skip
    return apps.get_model("registry", "Model").objects.create(
        id=uuid.uuid4(), namespace=job.namespace, job=job, attempt=1, name=job.name, upload_id=upload.pk, size=3,
        files=[{"path": "m", "size": 3, "sha256": HASH, "key": f"{upload.key_prefix}/m"}], **columns,
    )  # fmt: skip


def test_models_of_jobs_become_versions_of_named_models(before):
    namespace = before.get_model("namespaces", "Namespace").objects.create(id=uuid.uuid4(), slug="team")
    owner = before.get_model("accounts", "User").objects.create(id=uuid.uuid4(), username="ada")
    now = timezone.now()
    older = _kept(before, _job(before, namespace, owner, "digits"), completed_at=now - timedelta(days=2))
    newer = _kept(before, _job(before, namespace, owner, "digits"), completed_at=now - timedelta(days=1), stopped=True)
    other = _kept(before, _job(before, namespace, owner, "x" * 150), completed_at=now)
    unfinished = _kept(before, _job(before, namespace, owner, "half"))
    before.get_model("uploads", "Manifest").objects.create(
        upload_id=older.upload_id, packed=pack([ListedFile("m", 3, "", HASH)])
    )
    MigrationExecutor(connection).migrate(MigrationExecutor(connection).loader.graph.leaf_nodes())
    digits = Model.objects.get(name="digits")
    assert (digits.latest_number, digits.created_by.username, digits.created_at) == (2, "ada", older.completed_at)
    first, second = digits.versions.order_by("number")
    assert (first.pk, first.created_at, first.stopped) == (older.pk, older.completed_at, False)
    assert (second.pk, second.number, second.stopped, second.job_id) == (newer.pk, 2, True, newer.job_id)
    assert second.source["arguments"] == ["--lr=1"]
    for version, row in ((first, older), (second, newer)):
        assert [(one.path, one.key, one.sha256) for one in files_of(version)] == [("m", row.files[0]["key"], HASH)]
    assert ModelVersion.objects.get(pk=other.pk).parent.name == "x" * 100
    assert ModelUpload.objects.get().upload_id == unfinished.upload_id
