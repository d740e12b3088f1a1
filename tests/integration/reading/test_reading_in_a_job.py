"""A job of two workers on the local engine reads a prepared dataset, streamed from MinIO: each its own shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.reading.prepared import READS_TWICE, labels, write
from tests.real.object_stores import S3Server, minio_server
from tests.real.scene import SMALL, scene

__all__ = ["minio_server"]
pytestmark = [pytest.mark.s3, pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _no_counts():
    """No database of Django's own is needed here."""


def test_each_record_is_read_once_by_one_of_the_workers(tmp_path: Path, minio_server: S3Server) -> None:
    with scene(settings=minio_server.variables()) as portal:
        latest = portal.client.datasets.put("numbers", [write(tmp_path / "prepared")]).latest
        assert latest is not None
        one = {"dataset_version": latest.id, "mode": "stream", "share": "shards"}
        roles = {"worker": {**SMALL, "memory": "1Gi", "replicas": 2}}
        job = portal.launch(READS_TWICE, strategy="multi_worker_mirrored", roles=roles, inputs=[one])
        ended = portal.ended(job, 200)
        lines = [portal.lines(job, index=index) for index in range(2)]
        assert ended.phase == "SUCCEEDED", (ended.message, lines)
        portal.assert_nothing_is_left(portal.settled(job))
    read = [labels(text) for text in lines]
    assert all("staged ['dataset.json']" in text for text in lines)
    assert sorted(read[0] + read[1]) == list(range(120))
    assert [sorted({number // 20 for number in one}) for one in read] == [[0, 2, 4], [1, 3, 5]]
