"""Every object of a portal on MinIO is read back: its bytes have the checksum that the database has, and the bucket
holds what the database knows and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.object_stores import S3Server, minio_server
from tests.real.scene import Scene, scene, until
from yardmaster.storage.s3 import S3Storage

__all__ = ["minio_server"]
pytestmark = [pytest.mark.s3, pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

MIB = 1 << 20
PART = 8 * MIB
TRAINS = """
import os, pathlib

log, model = pathlib.Path(os.environ["LOG_DIR"]), pathlib.Path(os.environ["MODEL_DIR"])
for name in ("index", "data-00000-of-00001", "meta"):
    (log / f"model.ckpt-20.{name}").write_text(f"{name} of step 20")
(log / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-20"')
(log / "table.csv").write_text("a,b")
model.mkdir(parents=True, exist_ok=True)
(model / "saved_model.pb").write_bytes(os.urandom(9 << 20))
"""
LISTS = """
import json
import django
django.setup()
from apps.uploads.models import State, Upload
from apps.uploads.selectors import stored_files
complete = Upload.objects.filter(state=State.COMPLETE)
print(json.dumps({one.key: [upload.kind, one.size, one.sha256] for upload in complete for one in stored_files(upload)}))
"""


@dataclass(frozen=True)
class Known:
    """What the database has of one object."""

    kind: str
    size: int
    sha256: str


class Stored:
    """A portal and its bucket."""

    def __init__(self, one: Scene, bucket: S3Storage) -> None:
        self.scene, self.bucket = one, bucket

    def known(self) -> dict[str, Known]:
        found = json.loads(self.scene.portal.script(LISTS).splitlines()[-1])
        return {key: Known(*facts) for key, facts in found.items()}

    def in_bucket(self) -> set[str]:
        return {one.key for one in self.bucket.everything()}

    def damaged(self) -> list[str]:
        """The keys of which the bytes do not have the size and checksum that the database has, or are not there."""
        here = self.in_bucket()
        return sorted(key for key, one in self.known().items() if key not in here or not self._is_whole(key, one))

    def _is_whole(self, key: str, known: Known) -> bool:
        with self.bucket.open_range(key) as body:
            data = body.read()
        return (len(data), checksum(data, like=known.sha256)) == (known.size, known.sha256)


def checksum(data: bytes, like: str) -> str:
    """Plain, or that of parts of 8 MiB, as docs/protocols.md has it."""
    if "-" not in like:
        return hashlib.sha256(data).hexdigest()
    parts = [hashlib.sha256(data[at : at + PART]).digest() for at in range(0, len(data), PART)]
    return f"{hashlib.sha256(b''.join(parts)).hexdigest()}-{len(parts)}"


@pytest.fixture(autouse=True)
def _no_counts():
    """No database of Django's own is needed here."""


@pytest.fixture(scope="module")
def stored(minio_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    options = minio_server.options() | {"bucket": f"all-{uuid.uuid4().hex[:12]}", "prefix": ""}
    settings = {f"YARDMASTER_S3_{name.upper()}": value for name, value in options.items() if value}
    with scene(settings=settings) as one:
        one.portal.manage("prepare")
        _fill(one, tmp_path_factory.mktemp("raw"))
        yield Stored(one, S3Storage(**options))


def _fill(one: Scene, folder: Path) -> None:
    """A dataset with a file of three parts, one prepared from it, and a job's code, checkpoint, output and model."""
    for label in ("bad", "good"):
        (folder / label).mkdir()
        for number in range(10):
            (folder / label / f"größe {number}.txt").write_text(f"{label} film {number}\n")
    raw = one.client.datasets.put("texts", [folder]).latest
    (folder / "large.bin").write_bytes(os.urandom(20 * MIB))
    (folder / "empty").write_bytes(b"")
    one.client.datasets.put("all", [folder])
    assert raw is not None
    prepared = one.client.jobs.prepare(raw.id, {"to": "prepared", "memory": "1Gi", "cpu": "0.5"})
    trained = one.launch(TRAINS)
    for job in (prepared, trained):
        ended = one.settled(job, 200)
        assert ended.phase == "SUCCEEDED", (ended.message, one.lines(job))
    published = one.client.jobs.published(prepared.id, wait=True)
    assert published is not None
    assert published["state"] == "published", published


def test_the_bucket_holds_what_the_database_knows_and_nothing_else(stored: Stored):
    known = stored.known()
    assert {one.kind for one in known.values()} == {"dataset", "code", "checkpoint", "output", "model"}
    assert any(key.endswith("/dataset.json") for key in known), "the prepared version"
    assert known.keys() - stored.in_bucket() == set()
    until(lambda: stored.in_bucket() <= stored.known().keys(), what="workers to remove the parts of what was published")


def test_every_object_has_the_checksum_that_the_database_has(stored: Stored):
    forms = {one.sha256.rpartition("-")[2] for one in stored.known().values() if "-" in one.sha256}
    assert forms >= {"2", "3"}, "files of several parts are among them"
    assert stored.damaged() == []


def test_an_object_that_was_changed_cut_or_removed_would_be_found(stored: Stored):
    changed, cut, removed = sorted(key for key, one in stored.known().items() if one.kind == "dataset" and one.size)[:3]
    kept = {}
    for key in (changed, cut, removed):
        with stored.bucket.open_range(key) as body:
            kept[key] = body.read()
    stored.bucket.put(changed, bytes([kept[changed][0] ^ 1]) + kept[changed][1:])
    stored.bucket.put(cut, kept[cut][:-1])
    stored.bucket.delete(removed)
    stored.bucket.put(f"{removed} of others", b"x")
    assert stored.damaged() == sorted(kept)
    assert stored.in_bucket() - stored.known().keys() == {f"{removed} of others"}
    stored.bucket.delete(f"{removed} of others")
    for key, content in kept.items():
        stored.bucket.put(key, content)
    assert stored.damaged() == []


def test_a_whole_portal_is_copied_to_a_folder_and_from_there_to_an_empty_bucket(stored: Stored):
    known = stored.known()
    assert f"{len(known)} objects" in stored.scene.portal.manage("copy_objects", "--from", "s3", "--to", "folder")
    for key in stored.in_bucket():
        stored.bucket.delete(key)
    assert stored.damaged() == sorted(known)
    assert f"{len(known)} objects" in stored.scene.portal.manage("copy_objects", "--from", "folder", "--to", "s3")
    assert stored.in_bucket() == known.keys()
    assert stored.damaged() == []
