"""A check ends in time and goes on where it ended, within a file too."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from apps.datasets import integrity
from apps.datasets.integrity import version_check
from apps.datasets.models import DatasetVersion
from apps.uploads.models import FileBlock
from apps.uploads.versioned.selectors import file_key
from tests.integration.sending import sha256, store, uploaded
from yardmaster.storage.file_list import pack, unpack

__all__ = ["store"]
pytestmark = [pytest.mark.django_db]

MIB = 1 << 20
PART = 8 * MIB
LARGE = b"".join(bytes([number]) * MIB for number in range(25))


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def make(client, content: dict[str, bytes]) -> DatasetVersion:
    made = client.post("/api/v1/datasets/", {"name": "d", "upload": uploaded(client, content)}).json()
    return DatasetVersion.objects.get(pk=made["latest"]["id"])


def all_of(version: DatasetVersion, **more) -> list[integrity.CheckResult]:
    results = [version_check(version, patience=0, **more)]
    while results[-1].next is not None:
        results.append(version_check(version, after=results[-1].next, patience=0, **more))
        assert len(results) < 20
    return results


def damage(version: DatasetVersion, path: str, content: bytes) -> None:
    file = Path(settings.YARDMASTER_STORAGE["options"]["root"]) / "objects" / file_key(version, path)
    file.chmod(0o640)
    file.write_bytes(content)


def test_a_large_file_is_read_part_by_part(client):
    version = make(client, {"a.bin": b"a", "large.bin": LARGE, "z.bin": b"z"})
    results = all_of(version)
    assert max(one.bytes for one in results) <= PART
    assert sum(one.bytes for one in results) == len(LARGE) + 2
    assert sum(one.checked for one in results) == 3
    assert [one.corrupt for one in results] == [[]] * len(results)
    whole = version_check(version)
    assert (whole.bytes, whole.checked, whole.next) == (len(LARGE) + 2, 3, None)


def test_the_api_gives_where_it_goes_on_and_refuses_what_it_never_gave(client, monkeypatch):
    monkeypatch.setattr(integrity, "PATIENCE", 0.0)
    version = make(client, {"large.bin": LARGE})
    address, checked, after = f"/api/v1/dataset-versions/{version.pk}/check/", 0, ""
    for _ in range(4):
        answer = client.get(address, {"after": after}).json()
        checked, after = checked + answer["checked"], answer["next"]
        assert answer["bytes"] <= PART
    assert (checked, after) == (1, None)
    refused = client.get(address, {"after": "/1/abc//large.bin"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "after")


@pytest.mark.parametrize("at", [0, PART, len(LARGE) - 1])
def test_damage_in_any_part_is_found(client, at: int):
    version = make(client, {"large.bin": LARGE})
    damage(version, "large.bin", LARGE[:at] + b"\xff" + LARGE[at + 1 :])
    (fault,) = [one for result in all_of(version) for one in result.corrupt]
    assert fault.path == "large.bin"
    assert fault.found not in ("", fault.expected)


@pytest.mark.parametrize("content", [LARGE + b"more", LARGE[:-1]])
def test_a_file_of_another_size_is_corrupt(client, content: bytes):
    version = make(client, {"large.bin": LARGE})
    damage(version, "large.bin", content)
    (fault,) = version_check(version).corrupt
    assert str(len(content)) in fault.message


def plain(version: DatasetVersion, path: str, content: bytes) -> None:
    """As where the plain SHA-256 of a file of several parts was announced."""
    block = FileBlock.objects.get(upload=version.upload_id)
    files = [replace(one, sha256=sha256(content)) if one.path == path else one for one in unpack(bytes(block.packed))]
    FileBlock.objects.filter(pk=block.pk).update(packed=pack(files))


def test_a_file_with_a_checksum_of_the_whole_is_read_in_one_request_or_named(client):
    version = make(client, {"a.bin": b"a", "large.bin": LARGE, "z.bin": b"z"})
    plain(version, "large.bin", LARGE)
    quick = all_of(version)
    assert ([one.unread for one in quick], sum(one.checked for one in quick)) == ([[]] * len(quick), 3)
    seconds = itertools.count(0, 25)
    slow = all_of(version, clock=lambda: next(seconds))
    assert [path for one in slow for path in one.unread] == ["large.bin"]
    assert (sum(one.checked for one in slow), [one.corrupt for one in slow]) == (2, [[]] * len(slow))
    assert sum(one.bytes for one in slow) < len(LARGE)
