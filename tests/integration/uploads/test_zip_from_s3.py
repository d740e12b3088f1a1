"""A ZIP of a version on an S3 server passes through the web process, which holds no more of it than a piece."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import urllib3

from tests.real.object_stores import KEYS, S3Server, minio_server
from tests.real.portal import CHEAP, WHOLE, RealPortal, real_portal
from yardmaster_client import Yardmaster

__all__ = ["minio_server"]
pytestmark = [pytest.mark.s3, pytest.mark.slow]

MIB = 1 << 20
FILES, SIZE = 4, 64 * MIB
GROWTH = 32 * MIB


@pytest.fixture(scope="module")
def portal(minio_server: S3Server) -> Iterator[RealPortal]:
    access_key, secret_key = KEYS
    settings = {
        "YARDMASTER_S3_ENDPOINT": minio_server.url,
        "YARDMASTER_S3_BUCKET": "portal-of-zips",
        "YARDMASTER_S3_ACCESS_KEY": access_key,
        "YARDMASTER_S3_SECRET_KEY": secret_key,
    }
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-real-") as folder,
        real_portal(Path(folder), WHOLE, CHEAP | settings) as running,
    ):
        running.manage("prepare")
        yield running


def _made(folder: Path, count: int, size: int) -> Path:
    """Files that do not become smaller when they are packed."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.bin").write_bytes(os.urandom(MIB) * (size // MIB))
    return folder


def _downloaded(portal: RealPortal, version: str, target: Path, web: psutil.Process) -> int:
    """The largest memory of the web process while the ZIP of a version comes."""
    headers = {"Authorization": f"Bearer {portal.token_of('ada', is_staff=True)}"}
    address = f"{portal.url}/api/v1/dataset-versions/{version}/archive/"
    answer = urllib3.request("GET", address, headers=headers, preload_content=False, timeout=60.0)
    assert answer.status == 200, answer.data
    most = 0
    with target.open("wb") as file:
        for piece in answer.stream(MIB):
            file.write(piece)
            most = max(most, web.memory_info().rss)
    return most


@pytest.mark.timeout(300)
@pytest.mark.long
def test_the_web_process_does_not_grow_with_a_zip_from_an_s3_server(portal: RealPortal, tmp_path: Path) -> None:
    web = psutil.Process(portal.running["web"].pid)
    with Yardmaster(portal.url, portal.token_of("ada", is_staff=True)) as client:
        small = client.datasets.put("small", [_made(tmp_path / "small", 1, MIB)]).latest
        large = client.datasets.put("large", [_made(tmp_path / "large", FILES, SIZE)]).latest
    assert small is not None
    assert large is not None
    _downloaded(portal, small.id, tmp_path / "small.zip", web)  # what is loaded once
    before = web.memory_info().rss
    growth = _downloaded(portal, large.id, tmp_path / "large.zip", web) - before
    with zipfile.ZipFile(tmp_path / "large.zip") as archive:
        assert sum(one.file_size for one in archive.infolist()) == FILES * SIZE
        assert archive.testzip() is None
    assert growth <= GROWTH, f"{growth / MIB:.1f} MiB"
    print(f"the web process grew by {growth / MIB:.1f} MiB")
