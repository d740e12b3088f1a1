"""Real S3 servers for tests, MinIO and versitygw: one of each per worker, on loopback, that keeps nothing."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import urllib3

from portal.minio import Minio
from tests.real.portal import ROOT, free_port

KEYS = ("yardmaster-tests", "yardmaster-tests-secret")


@dataclass(frozen=True)
class S3Server:
    """A server that runs."""

    url: str
    process: subprocess.Popen[bytes]

    def options(self) -> dict[str, str]:
        """What `S3Storage` needs to use it, with a part of a bucket of its own."""
        access_key, secret_key = KEYS
        prefix = f"t/{uuid4().hex}"
        return {
            "endpoint": self.url, "bucket": "tests", "access_key": access_key, "secret_key": secret_key,
            "prefix": prefix,
        }  # fmt: skip

    def variables(self) -> dict[str, str]:
        """The same for the environment of a portal."""
        return {f"YARDMASTER_S3_{name.upper()}": value for name, value in self.options().items()}

    def settings(self) -> dict[str, object]:
        """The same as the setting `YARDMASTER_STORAGE`."""
        return {"class": "yardmaster.storage.s3.S3Storage", "options": self.options()}


@contextmanager
def running(command: Sequence[str | Path], environment: Mapping[str, str], url: str, log: Path) -> Iterator[S3Server]:
    """Until it answers; ended afterwards."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 60
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text()[-2000:])
            time.sleep(0.05)
        yield S3Server(url, process)
    finally:
        process.kill()
        process.wait(20)


@contextmanager
def minio(folder: Path, host: str = "127.0.0.1") -> Iterator[S3Server]:
    """`host` is this machine's address where tasks reach it."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Minio(host, free_port(host), folder / "objects", *KEYS)
    with running(server.command(), server.environment(), server.url, folder / "minio.log") as found:
        yield found


@contextmanager
def versitygw(folder: Path) -> Iterator[S3Server]:
    objects, sidecar = folder / "objects", folder / "sidecar"
    objects.mkdir(parents=True), sidecar.mkdir()
    built = subprocess.run(
        [ROOT / "deploy/objectstores/build", "versitygw"], check=True, stdout=subprocess.PIPE, text=True
    )
    address = f"127.0.0.1:{free_port()}"
    access_key, secret_key = KEYS
    words = ["--port", address, "--access", access_key, "--secret", secret_key, "--quiet", "--keep-alive",
             "--cors-allow-origin", "*", "posix", "--sidecar", str(sidecar), str(objects)]  # fmt: skip
    with running([built.stdout.strip(), *words], {}, f"http://{address}", folder / "versitygw.log") as found:
        yield found


def _answers(url: str) -> bool:
    try:
        return urllib3.request("GET", url, retries=False, timeout=1.0).status > 0
    except urllib3.exceptions.HTTPError:
        return False


@pytest.fixture(scope="session")
def minio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with minio(tmp_path_factory.mktemp("minio")) as server:
        yield server


@pytest.fixture(scope="session")
def versitygw_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server
