"""An address allows one thing to whoever has it, until it expires."""

from datetime import timedelta
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from yardmaster.storage.base import AddressRefused
from yardmaster.storage.signing import AddressBook, PartGrant, ReadGrant

SECRET = "s" * 40
QUARTER = timedelta(minutes=15)


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(clock) -> AddressBook:
    return AddressBook(SECRET, clock)


def _read(book: AddressBook, address: str, **changes: str) -> ReadGrant:
    url = urlsplit(address)
    return book.read_grant(unquote(url.path).removeprefix("/storage/objects/"), dict(parse_qsl(url.query)) | changes)


def _part(book: AddressBook, address: str, upload_id: str = "u1", part: int = 3, **changes: str) -> PartGrant:
    return book.part_grant(upload_id, part, dict(parse_qsl(urlsplit(address).query)) | changes)


@pytest.mark.parametrize("key", ["a/b", "a b/ü?&#=%/c", "x\"y'z", "🙂"])
def test_a_read_address_says_what_was_granted(book, key):
    grant = ReadGrant(key, 'na"me;ü.txt', "image/png")
    assert _read(book, book.read_address(grant, QUARTER)) == grant


@pytest.mark.parametrize(
    "changes", [{"filename": "x"}, {"type": "text/html"}, {"expires": "9999999"}, {"signature": ""}, {"signature": "é"}]
)
def test_a_changed_read_address_is_refused(book, changes):
    address = book.read_address(ReadGrant("a/b", "f", "text/plain"), QUARTER)
    with pytest.raises(AddressRefused):
        _read(book, address, **changes)


def test_an_address_for_another_object_is_refused(book):
    address = book.read_address(ReadGrant("a/b", "", ""), QUARTER)
    with pytest.raises(AddressRefused):
        _read(book, address.replace("a/b", "a/c"))


def test_a_part_address_says_what_was_granted(book):
    grant = PartGrant("a/b", "u1", 3, 77, "0" * 64)
    assert _part(book, book.part_address(grant, QUARTER)) == grant


@pytest.mark.parametrize(
    "changes", [{"part": 4}, {"upload_id": "u2"}, {"key": "a/c"}, {"size": "78"}, {"size": "-1"}, {"expires": "x"}]
)
def test_a_part_address_is_good_for_no_other_part(book, changes):
    address = book.part_address(PartGrant("a/b", "u1", 3, 77, "0" * 64), QUARTER)
    with pytest.raises(AddressRefused):
        _part(book, address, **changes)


def test_a_read_address_does_not_write_and_a_part_address_does_not_read(book):
    read = book.read_address(ReadGrant("a/b", "", ""), QUARTER)
    part = book.part_address(PartGrant("a/b", "", 0, 0, "0" * 64), QUARTER)
    with pytest.raises(AddressRefused):
        _part(book, read, upload_id="", part=0, key="a/b", size="0")
    with pytest.raises(AddressRefused):
        book.read_grant("a/b", dict(parse_qsl(urlsplit(part).query)))


def test_facts_cannot_be_shifted_from_one_field_to_the_next(book):
    address = book.read_address(ReadGrant("k", "ab", "c"), QUARTER)
    with pytest.raises(AddressRefused):
        _read(book, address, filename="a", type="bc")


def test_an_address_expires(book, clock):
    address = book.read_address(ReadGrant("a/b", "", ""), QUARTER)
    clock.now += 15 * 60 - 1
    _read(book, address)
    clock.now += 1
    with pytest.raises(AddressRefused) as refused:
        _read(book, address)
    assert refused.value.code == "address_expired"


def test_another_portals_address_is_refused(book, clock):
    address = AddressBook("t" * 40, clock).read_address(ReadGrant("a/b", "", ""), QUARTER)
    with pytest.raises(AddressRefused):
        _read(book, address)


@pytest.mark.parametrize("expires", [timedelta(), timedelta(seconds=-1), timedelta(days=8)])
def test_no_address_lives_for_ever_or_is_born_dead(book, expires):
    with pytest.raises(ValueError, match="lives"):
        book.read_address(ReadGrant("a", "", ""), expires)


def test_a_short_secret_is_refused(clock):
    with pytest.raises(ValueError, match="shorter"):
        AddressBook("short", clock)
