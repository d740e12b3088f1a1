"""A store of the test's own, and what a client does to upload: shared by the tests of uploads, datasets and code."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from apps.stores import storage
from yardmaster.formats.tfrecord import masked_crc


@pytest.fixture(autouse=True)
def store(settings, tmp_path):
    """The portal's store, in the test's own folder."""
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects"}
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"options": options}
    return storage()


def files_of(content: Mapping[str, bytes], **more: Any) -> list[dict[str, Any]]:
    return [{"path": path, "size": len(data)} | more for path, data in content.items()]


def begin(client: APIClient, content: Mapping[str, bytes], kind: str = "dataset", **more: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/uploads/", {"kind": kind, "files": files_of(content)} | more)
    assert answer.status_code == 201, answer.json()
    return answer.json()


def part(file: int, number: int, data: bytes = b"") -> dict[str, Any]:
    """A part as it is to be signed."""
    return {"file": file, "part": number, "sha256": sha256(data)}


def sign(client: APIClient, upload: str, file: int, *content: bytes) -> list[str]:
    """The paths of the signed addresses of a file's parts, from the first, of which this is the content."""
    wanted = [part(file, number, data) for number, data in enumerate(content, start=1)]
    answer = client.post(f"/api/v1/uploads/{upload}/parts/", {"parts": wanted})
    assert answer.status_code == 200, answer.json()
    return [one["url"].partition(":8080")[2] for one in answer.json()["urls"]]


def put(url: str, data: bytes, **headers: str) -> Any:
    """As a caller without any credential."""
    return Client().put(url, data, "application/octet-stream", headers=headers)


def send(client: APIClient, upload: Mapping[str, Any], content: Mapping[str, bytes]) -> None:
    """Every part of every file."""
    for file in upload["files"]:
        data, step = content[file["path"]], upload["part_size"]
        pieces = [data[at : at + step] for at in range(0, len(data), step)]
        urls = sign(client, upload["id"], file["index"], *pieces) if pieces else []
        for piece, url in zip(pieces, urls, strict=True):
            assert put(url, piece).status_code == 200


def complete(client: APIClient, upload: str, **body: Any) -> Any:
    return client.post(f"/api/v1/uploads/{upload}/complete/", body)


def uploaded(client: APIClient, content: Mapping[str, bytes], kind: str = "dataset", **more: Any) -> str:
    """The id of a complete upload."""
    upload = begin(client, content, kind, **more)
    send(client, upload, content)
    answer = complete(client, upload["id"])
    assert answer.status_code == 200, answer.json()
    return upload["id"]


def zipped(content: Mapping[str, bytes]) -> bytes:
    """The same bytes at any time of the day."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            archive.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tfrecord(*records: bytes) -> bytes:
    out = b""
    for data in records:
        length = struct.pack("<Q", len(data))
        out += length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))
    return out
