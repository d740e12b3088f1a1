"""Data that is streamed into pods: the two workers of a job read a prepared dataset from MinIO, each its own shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.account import Account
from tests.cluster.conftest import portal_on
from tests.cluster.jobs import ended, launch, text_of
from tests.cluster.reach import Cluster
from tests.integration.reading.prepared import READS_TWICE, labels, write
from tests.real.object_stores import minio
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.s3, pytest.mark.slow, pytest.mark.timeout(400)]

RECORDS, SHARDS = 20, 6
"""Of each shard, and in all. An even number of shards: both workers get as many."""


@pytest.fixture
def grace(cluster: Cluster, account: Account, own_address: str, tmp_path: Path) -> Iterator[Yardmaster]:
    """A user of a portal whose objects lie on MinIO, where pods reach it."""
    with (
        minio(tmp_path / "minio", own_address) as server,
        portal_on(cluster, account, own_address, server.variables()) as portal,
        Yardmaster(portal.url, portal.token_of("grace")) as client,
    ):
        yield client


def test_each_record_is_streamed_once_per_epoch_into_one_of_two_pods(grace: Yardmaster, tmp_path: Path):
    latest = grace.datasets.put("numbers", [write(tmp_path / "prepared", SHARDS, RECORDS)]).latest
    assert latest is not None
    one = {"dataset_version": latest.id, "mode": "stream", "share": "shards"}
    roles = {"worker": {"replicas": 2, "cpu": 0.2, "memory": "1Gi"}}
    job = ended(grace, launch(grace, READS_TWICE, strategy="multi_worker_mirrored", roles=roles, inputs=[one]))
    lines = [text_of(grace, job, index=index).splitlines() for index in range(2)]
    assert len({line for text in lines for line in text if line.startswith("machine")}) == 2, "a pod each"
    assert all("staged ['dataset.json']" in text for text in lines), "no shard is copied before the start"
    read = [labels(text) for text in lines]
    assert sorted(read[0] + read[1]) == list(range(SHARDS * RECORDS))
    assert [sorted({number // RECORDS for number in mine}) for mine in read] == [[0, 2, 4], [1, 3, 5]]
