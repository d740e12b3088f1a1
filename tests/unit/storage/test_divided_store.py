"""A store in which keys of one prefix lie in another store."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest

from yardmaster.errors import Unavailable
from yardmaster.storage.base import ObjectMissing, Storage
from yardmaster.storage.divided import Divided
from yardmaster.storage.local import LocalStorage
from yardmaster.storage.signing import PartGrant

SIGNS = {"base_url": "http://portal", "signing_key": "k" * 32}
SHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Storage, Storage]:
    return LocalStorage(tmp_path / "own", **SIGNS), LocalStorage(tmp_path / "other", **SIGNS)


@pytest.fixture
def divided(sides: tuple[Storage, Storage]) -> Divided:
    return Divided(sides[0], "ignite/", sides[1], "A_SETTING")


def test_each_key_leads_to_its_store(divided, sides):
    own, other = sides
    divided.put("a/b", b"own")
    divided.put("ignite/a/b", b"other")
    assert [one.key for one in own.list_prefix("a")] == ["a/b"]
    assert [one.key for one in other.list_prefix("ignite")] == ["ignite/a/b"]
    divided.delete_prefix("ignite")
    assert divided.stat("a/b").size == 3
    with pytest.raises(ObjectMissing):
        divided.stat("ignite/a/b")


def test_copies_and_moves_pass_from_one_store_to_the_other(divided):
    divided.put("ignite/k", b"abc")
    divided.copy("ignite/k", "k")
    divided.move("ignite/k", "moved")
    assert divided.stat("k").size == divided.stat("moved").size == 3
    with pytest.raises(ObjectMissing):
        divided.stat("ignite/k")


def test_parts_and_addresses_of_both_are_served(divided, sides):
    for key, place in (("k", sides[0]), ("ignite/k", sides[1])):
        upload_id = divided.multipart_begin(key, 1 << 20)
        signed = divided.part_url(key, upload_id, 1, size=3, sha256=SHA256, expires=timedelta(minutes=1))
        assert "signature=" in signed.url
        divided.served().part_write(PartGrant(key, upload_id, 1, 3, SHA256), io.BytesIO(b"abc"))
        divided.multipart_complete(key, upload_id, divided.parts(key, upload_id))
        assert place.stat(key).size == 3
        address, _, query = divided.read_url(key, timedelta(minutes=1)).partition("?")
        named = dict(pair.split("=") for pair in query.split("&"))
        assert divided.served().addresses.read_grant(address.split("/objects/")[1], named).key == key


def test_without_the_other_store_its_keys_are_unavailable_and_the_setting_is_named(sides):
    alone = Divided(sides[0], "ignite/", None, "A_SETTING")
    alone.put("k", b"x")
    for verb in (alone.stat, alone.open_range, alone.delete, alone.delete_prefix):
        with pytest.raises(Unavailable, match="A_SETTING"):
            verb("ignite/k")
    with pytest.raises(Unavailable, match="A_SETTING"):
        alone.delete_prefix("ignite")
    alone.clean_up(timedelta(0))
