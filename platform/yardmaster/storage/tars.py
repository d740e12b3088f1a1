"""Tars from strangers, read in one pass: nothing is kept of an entry but its path and size, and no header may be long.

Regular files alone are taken, folders are passed over, everything else is refused by name: links, devices, pipes and
sparse files. Formats: ustar, pax, GNU and the old one. Not Python's `tarfile`: it reads headers of any size into memory
and remembers each entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from yardmaster.storage.archives import ArchiveRefused, Paths
from yardmaster.storage.base import Readable
from yardmaster.storage.compressed import damaged

BLOCK = 512
LONGEST_HEADER = 1 << 20
"""Of what describes the entry that follows: paths, and what other programs keep there."""
MOST_HEADERS = 16
"""In a row before an entry."""
HEADERS_FREE, HEADERS_PER_ENTRY = 16 << 20, 4 << 10
RECORDS_FREE, RECORDS_PER_ENTRY = 100_000, 32
"""What all descriptions together may be, beside what each entry adds: bytes, and records of pax headers. Other programs
write some hundred bytes and three records for a file, so a flood of them is no data, only processor time."""
LARGEST_ENTRY = 5 << 40
_SKIPPED_AT_ONCE = 1 << 18
_LONGEST_REST = 64 << 20
"""Behind the end mark: padding."""

_DESCRIBES = (b"x", b"g", b"L", b"K", b"V")
_FILE, _FOLDER = (b"0", b"\0", b"7"), (b"5", b"D")
_REFUSED = {
    b"1": ("link_refused", "is a hard link; links are refused"),
    b"2": ("link_refused", "is a link; links are refused"),
    b"3": ("special_file_refused", "is a device; devices, pipes and sockets are refused"),
    b"4": ("special_file_refused", "is a device; devices, pipes and sockets are refused"),
    b"6": ("special_file_refused", "is a pipe; devices, pipes and sockets are refused"),
    b"S": ("sparse_refused", "is a sparse file"),
    b"M": ("tar_volumes", "continues in another volume"),
}


@dataclass
class TarEntry:
    """One file. Its bytes are read before the next entry is asked for, or never."""

    path: str
    size: int
    _stream: _Exact
    _left: int

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` of its bytes. Raises `ArchiveRefused` where the tar ends within them."""
        most = self._left if size < 0 else min(size, self._left)
        data = self._stream.some(most) if most else b""
        self._left -= len(data)
        return data

    def pass_over(self) -> None:
        """Read up to where the next header begins."""
        while self.read(_SKIPPED_AT_ONCE):
            pass
        self._stream.exactly(-self.size % BLOCK)


class TarReader:
    """The files of a tar, one by one. `beat` is called for each piece that is read, also of what is passed over."""

    def __init__(self, source: Readable, *, most_files: int, beat: Callable[[], None] = lambda: None) -> None:
        self._stream = _Exact(source, beat)
        self._most = most_files
        self._bytes = _Budget(HEADERS_FREE, HEADERS_PER_ENTRY)
        self._records = _Budget(RECORDS_FREE, RECORDS_PER_ENTRY)
        self._passed = _Budget(_LONGEST_REST, 0)

    def entries(self) -> Iterator[TarEntry]:
        """Each file, its path checked. Raises `ArchiveRefused`."""
        paths = Paths(self._most)
        seen = 0
        while (entry := self._entry(seen)) is not None:
            seen += 1
            if seen > 2 * self._most:
                raise ArchiveRefused("too_many_files", f"The archive has more than {2 * self._most} entries.")
            if entry.path:
                paths.add(entry.path)
                yield entry
            else:
                self._passed.take(entry.size, seen, "its folders have content")
            entry.pass_over()
        if not len(paths):
            raise ArchiveRefused("archive_empty", "The archive holds no file.")
        self._stream.drain(_LONGEST_REST)

    def _entry(self, seen: int) -> TarEntry | None:
        """The next file, behind so many; without a path one that is passed over. None: the end."""
        known: dict[str, str] = {}
        for _ in range(MOST_HEADERS):
            header = self._stream.exactly(BLOCK)
            if not header.strip(b"\0"):
                return None
            kind, size = _checked(header), _number(header[124:136])
            if kind in _DESCRIBES:
                self._bytes.take(BLOCK + size, seen, "its headers are far larger than its files need")
            if kind in (b"x", b"g"):
                found = _pax(self._body(size), lambda: self._records.take(1, seen, "its headers have too many records"))
                if kind == b"x":
                    known |= found
                elif found.keys() & {"path", "size"}:
                    raise damaged("a header for all entries has a path or a size")
            elif kind == b"L":
                known["path"] = _text(self._body(size).rstrip(b"\0"))
            elif kind in (b"K", b"V"):
                self._body(size)
            else:
                return self._described(kind, header, size, known)
        raise damaged(f"an entry has more than {MOST_HEADERS} headers")

    def _described(self, kind: bytes, header: bytes, size: int, known: dict[str, str]) -> TarEntry:
        path = known.get("path") or _path_of(header)
        if any(name.startswith("GNU.sparse") for name in known):
            kind = b"S"
        if kind in _REFUSED:
            code, why = _REFUSED[kind]
            raise ArchiveRefused(code, f"{path[:600]!r} {why}.", "Create the archive again without it.")
        if kind not in (*_FILE, *_FOLDER):
            message = f"{path[:600]!r} is of an unknown kind ({kind!r})."
            raise ArchiveRefused("tar_entry_unknown", message, "Create the archive again without it.")
        if "size" in known:
            size = _decimal(known["size"])
        if not 0 <= size <= LARGEST_ENTRY:
            raise damaged(f"{path[:600]!r} has an impossible size")
        path = path.removeprefix("./")
        is_folder = kind in _FOLDER or path.endswith("/")  # the second: of old programs
        return TarEntry("" if is_folder else path, size, self._stream, size)

    def _body(self, size: int) -> bytes:
        if not 0 <= size <= LONGEST_HEADER:
            raise damaged(f"a header of {size} bytes; at most {LONGEST_HEADER} are read")
        data = self._stream.exactly(size)
        self._stream.exactly(-size % BLOCK)
        return data


class _Budget:
    """An amount that may be spent, which grows with the entries that were seen."""

    def __init__(self, free: int, per_entry: int) -> None:
        self._free = free
        self._per_entry = per_entry
        self._spent = 0

    def take(self, amount: int, seen: int, why_not: str) -> None:
        """Spend it. Raises `ArchiveRefused` where so much is not left."""
        self._spent += amount
        if self._spent > self._free + seen * self._per_entry:
            raise damaged(why_not)


class _Exact:
    """Reads as many bytes as are asked for."""

    def __init__(self, source: Readable, beat: Callable[[], None]) -> None:
        self._source = source
        self._beat = beat

    def some(self, most: int) -> bytes:
        self._beat()
        if not (data := self._source.read(most)):
            raise damaged("it ends within an entry")
        return data

    def exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            pieces.append(self.some(size))
            size -= len(pieces[-1])
        return b"".join(pieces)

    def drain(self, most: int) -> None:
        """Read to the end, so that the checksums of what is compressed are compared."""
        while data := self._source.read(_SKIPPED_AT_ONCE):
            self._beat()
            most -= len(data)
            if most < 0:
                raise damaged("much follows its end")


def is_tar(start: bytes) -> bool:
    """Whether a tar may begin so."""
    try:
        _checked(start[:BLOCK])
    except ArchiveRefused:
        return False
    return True


def _checked(header: bytes) -> bytes:
    """The entry's kind, where the header is one."""
    if len(header) < BLOCK:
        raise damaged("it ends within a header")
    wanted = _number(header[148:156])
    if wanted != sum(header[:148]) + 8 * 32 + sum(header[156:]):
        raise damaged("a header's checksum is wrong")
    return header[156:157]


def _number(field: bytes) -> int:
    """In octal digits, or as GNU writes large ones."""
    if field[0] & 0x80:
        if field[0] & 0x40:
            raise damaged("a number is negative")
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    digits = field.split(b"\0")[0].strip()
    try:
        return int(digits or b"0", 8)
    except ValueError as error:
        raise damaged("a number is none") from error


def _path_of(header: bytes) -> str:
    name, prefix = header[:100].split(b"\0")[0], header[345:500].split(b"\0")[0]
    has_prefix = header[257:263] == b"ustar\0" and prefix
    return _text(prefix + b"/" + name if has_prefix else name)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        message = f"{raw[:600]!r}: this path is not UTF-8."
        raise ArchiveRefused("path_invalid", message, "Rename the file, or leave it out.") from error


def _pax(body: bytes, count: Callable[[], None]) -> dict[str, str]:
    """The records that matter: `LENGTH NAME=VALUE` and the end of the line each."""
    found: dict[str, str] = {}
    at = 0
    while at < len(body):
        count()
        space = body.find(b" ", at, at + 12)
        length = _decimal(body[at:space].decode("ascii", "replace")) if space > 0 else 0
        record = body[space + 1 : at + length]
        if length <= 0 or at + length > len(body) or not record.endswith(b"\n") or b"=" not in record:
            raise damaged("a header's record is none")
        name, _, value = record[:-1].partition(b"=")
        if name in (b"path", b"size") or name.startswith(b"GNU.sparse"):
            found[name.decode("ascii", "replace")] = _text(value)
        at += length
    return found


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise damaged("a number is none")
    return int(text)
