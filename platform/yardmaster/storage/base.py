"""The storage contract: objects by key, multipart uploads with signed part addresses, short-lived read addresses.

The words and limits are S3's, so that any S3 server can stand behind it; a folder (`local`) speaks the same. Every verb
may be repeated without harm. Not here: who may do what, quotas and what an object means (`apps.uploads`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from yardmaster.errors import Unavailable, YardmasterError

if TYPE_CHECKING:
    from yardmaster.storage.signing import AddressBook, PartGrant

MAX_PARTS = 10_000
MAX_PART_SIZE = 5 << 30
MAX_OBJECT_SIZE = 5 << 40
MAX_KEY_BYTES = 1024
MAX_EXPIRY = timedelta(minutes=15)
"""Of a signed address, which is a credential. (S3 would allow seven days.)"""
CHUNK = 1 << 20


class StorageError(YardmasterError):
    """Base of what a store refuses for good."""

    code = "storage_error"


class KeyRefused(StorageError):
    """The key is no key: empty, too long, leads out of the store, or an object stands where a folder must."""

    code = "key_refused"


class ObjectMissing(StorageError):
    """No object has this key."""

    code = "object_missing"


class UploadMissing(StorageError):
    """No multipart upload of this id and key is open: it never was, was completed, or was aborted."""

    code = "upload_missing"


class PartsRefused(StorageError):
    """The parts do not make up the object: one is absent, has another ETag, or has the wrong size."""

    code = "parts_refused"


class ChecksumMismatch(PartsRefused):
    """What was sent does not have the SHA-256 that was signed. Nothing of it is kept."""

    code = "checksum_mismatch"


class AddressRefused(StorageError):
    """A signed address is forged, expired, or used for something other than what it was signed for."""

    code = "address_refused"


class StorageFull(Unavailable):
    """The store itself (not a quota) is full. Nothing half-made stays behind."""

    code = "storage_full"


@dataclass(frozen=True)
class ObjectStat:
    """What the store knows of one object. `etag` changes when the content does; it is no checksum of it."""

    key: str
    size: int
    etag: str
    modified: datetime
    sha256: str = field(default="", compare=False)
    """Its checksum as `yardmaster_runner.checksums` writes it, verified when the object came; empty where the store has
    none, as in lists."""


@dataclass(frozen=True, order=True)
class Part:
    """One part that has arrived whole. `sha256` in hexadecimal, verified when it came."""

    number: int
    size: int
    etag: str
    sha256: str = ""


@dataclass(frozen=True)
class SignedRequest:
    """What a client without any other credential may send, exactly so."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Audience(Enum):
    """Who uses an address: a store may have another name for each."""

    PEOPLE = "people"
    """Browsers and the command line."""
    TASKS = "tasks"


class ByteStream(Protocol):
    """Bytes to read in order, closed when done with."""

    def read(self, size: int = -1, /) -> bytes: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Readable(Protocol):
    """What `put` takes beside bytes."""

    def read(self, size: int = -1, /) -> bytes: ...


class Storage(Protocol):
    """Objects by key. A key is `/`-separated segments, none empty, `.` or `..`; at most 1,024 bytes.

    A prefix is a folder: `datasets/1` means the keys that begin with `datasets/1/`. An object is seen whole or not at
    all. Every verb raises `Unavailable` when the store does not answer and `StorageFull` when it is full.
    """

    def put(self, key: str, data: bytes | Readable) -> ObjectStat:
        """Write the object, over an older one."""
        ...

    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream:
        """The bytes from `start`, at most `length` of them; past the end: none. Raises `ObjectMissing`."""
        ...

    def stat(self, key: str) -> ObjectStat:
        """Raises `ObjectMissing`."""
        ...

    def copy(self, source: str, target: str) -> ObjectStat:
        """Raises `ObjectMissing`; writes over `target`."""
        ...

    def move(self, source: str, target: str) -> ObjectStat:
        """Repeated after success (source gone, target there): success."""
        ...

    def delete(self, key: str) -> None:
        """Absent: success."""
        ...

    def delete_prefix(self, prefix: str) -> None:
        """Everything below the folder. Nothing there: success."""
        ...

    def list_prefix(self, prefix: str, first: str = "") -> Iterator[ObjectStat]:
        """Everything below the folder, in no promised order; without keys that stand before `first` in the order of
        their characters."""
        ...

    def multipart_begin(self, key: str, part_size: int) -> str:
        """Open an upload and give its id. Every part but the last will have exactly `part_size` bytes."""
        ...

    def part_url(
        self,
        key: str,
        upload_id: str,
        part: int,
        *,
        size: int,
        sha256: str,
        expires: timedelta,
        audience: Audience = Audience.PEOPLE,
    ) -> SignedRequest:
        """How to send part `part` (from 1) of exactly `size` bytes with this SHA-256 (in hexadecimal), which the store
        verifies. The answer carries an `ETag`.

        Does not ask the store: a closed upload is noticed when the part is sent.
        """
        ...

    def object_url(
        self, key: str, *, size: int, sha256: str, expires: timedelta, audience: Audience = Audience.PEOPLE
    ) -> SignedRequest | None:
        """How to send a whole object of exactly `size` bytes with this SHA-256 in one request, over an older one. Until
        the address expires nothing closes it. None: this store takes objects in parts alone."""
        ...

    def parts(self, key: str, upload_id: str) -> list[Part]:
        """What has arrived, by number. Raises `UploadMissing`."""
        ...

    def multipart_complete(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectStat:
        """Make the object of these parts (1, 2, … without a gap). Completed before with the same size: success.

        Raises `UploadMissing` and `PartsRefused`; the upload then stays open.
        """
        ...

    def multipart_abort(self, key: str, upload_id: str) -> None:
        """Forget the upload and its parts. Absent: success."""
        ...

    def clean_up(self, older_than: timedelta) -> None:
        """Remove what verbs that were interrupted this long ago left behind, and uploads in parts that are as old and
        empty, whose ids may be lost. Nothing there: success."""
        ...

    def read_url(
        self,
        key: str,
        expires: timedelta,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        audience: Audience = Audience.PEOPLE,
    ) -> str:
        """An absolute address from which anyone who has it may GET the object, in ranges too, until it expires.

        It is delivered as an attachment named `filename`. Does not ask whether the object is there.
        """
        ...

    def origin(self, audience: Audience) -> str:
        """Scheme, host and port of the addresses that this store signs."""
        ...

    def prepare(self, prefix: str = "") -> None:
        """Make what the store needs before its first object below this folder. There already: success."""
        ...

    @property
    def is_near(self) -> bool:
        """Reading an object costs no network: what is worth knowing of its content can be looked up there."""
        ...

    def served(self) -> PortalServed | None:
        """What the portal must serve of it. None: the store has a server of its own."""
        ...


class PortalServed(Protocol):
    """A store whose signed addresses lead to the portal."""

    @property
    def addresses(self) -> AddressBook: ...

    def part_write(self, grant: PartGrant, data: Readable) -> str:
        """What a PUT to a part's address does: exactly the granted bytes, or the part does not count. Its ETag."""
        ...


def check_numbers(parts: Sequence[Part]) -> None:
    """Whether the parts are numbered from 1 without a gap, which S3 does not ask for. Raises `PartsRefused`."""
    if not parts:
        raise PartsRefused("No part was named: an object of nothing is written with put.")
    for expected, part in enumerate(parts, start=1):
        if part.number != expected:
            raise PartsRefused(f"Part {expected} is missing: parts are numbered from 1 without a gap.")


def read_chunks(stream: Readable, size: int = CHUNK) -> Iterator[bytes]:
    """The stream's bytes, never more than `size` at once."""
    while chunk := stream.read(size):
        yield chunk


MAX_SEGMENT_BYTES = 255
"""What one name may have on the file systems in use."""


def key_segments(key: str) -> list[str]:
    """The key's segments, or `KeyRefused` with what is wrong."""
    try:
        length = len(key.encode())
    except UnicodeEncodeError as error:
        raise KeyRefused(f"The key {key!r} is not valid Unicode.") from error
    if not 0 < length <= MAX_KEY_BYTES:
        raise KeyRefused(f"A key has 1 to {MAX_KEY_BYTES} bytes; this one has {length}.")
    segments = key.split("/")
    for segment in segments:
        if segment in {"", ".", ".."} or "\0" in segment:
            raise KeyRefused(f"The key {key!r} has the segment {segment!r}, which is not allowed.")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise KeyRefused(f"The key {key[:80]!r}… has a segment of more than {MAX_SEGMENT_BYTES} bytes.")
    return segments


def key_join(prefix: str, path: str) -> str:
    """`prefix/path`, checked."""
    key = f"{prefix}/{path}"
    key_segments(key)
    return key
