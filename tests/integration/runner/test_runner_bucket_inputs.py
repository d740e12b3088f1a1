"""Inputs that lie in a bucket of others: staged as they were registered, or not at all."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

import pytest

from tests.real.object_stores import KEYS, S3Server, minio_server
from yardmaster.storage.s3 import S3Storage

__all__ = ["minio_server"]
pytestmark = pytest.mark.s3


@pytest.fixture
def theirs(minio_server: S3Server) -> S3Storage:
    store = S3Storage(minio_server.url, f"inputs-{uuid.uuid4().hex[:8]}", *KEYS)
    store.prepare()
    store.put("a.txt", b"first")
    return store


@pytest.fixture
def ordered(portal, theirs) -> None:
    """A script that prints its input, which is registered as it is now."""
    portal.orders("import os\nprint(open(os.environ['DATA_DIR'] + '/a.txt').read())\n")
    found = theirs.stat("a.txt")
    url = theirs.read_url("a.txt", timedelta(minutes=5))
    file = {"path": "a.txt", "size": found.size, "sha256": f"etag:{found.etag}", "url": url}
    portal.order["inputs"] = [{"version": str(uuid.uuid4()), "name": "", "files": [file]}]


def reason(task) -> dict[str, str]:
    return json.loads((task.work / "exit.json").read_text())


@pytest.mark.usefixtures("ordered")
def test_an_object_is_read_from_its_bucket(task, portal):
    assert task.run() == 0, task.said
    assert portal.lines() == [b"first"]


@pytest.mark.usefixtures("ordered")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_object_that_changed_or_vanished_ends_the_start_and_is_named(task, theirs, is_deleted):
    if is_deleted:
        theirs.delete("a.txt")
    else:
        theirs.put("a.txt", b"other")
    assert task.run() == 90
    assert reason(task)["reason"] == "InputChanged"
    assert "a.txt" in reason(task)["message"]
