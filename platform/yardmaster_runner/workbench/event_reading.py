"""How TensorBoard reads event files here: without TensorFlow, and so that no file of a user ends it.

TensorBoard's own stand-in for TensorFlow reads records whole, of whatever length they claim to have, and computes the
checksum of each in Python, at some megabytes a second. TensorFlow ends the process at a length that it cannot allocate.
The reader here bounds a record and leaves out the checksum of its content: files are checked when they are uploaded.

An event that TensorBoard cannot make sense of ends the thread in which it reads all files, and fails requests that
concern others. Here it is skipped. So is a tag without a value, which every new tag is for a moment.
"""

from __future__ import annotations

import importlib
import os
import struct
import sys
import threading
import types
import weakref
from typing import Any, BinaryIO, Callable, Dict, Iterator, Optional, Set

from yardmaster_runner.events import masked_crc32c

MOST_RECORD = 128 << 20
"""Bytes of one event."""
MOST_TAGS_OF_RUN, MOST_TAGS = 5_000, 50_000
MOST_SKIPPED = 1000
"""Events of a file that are skipped at one look; the next one continues behind them."""
HEAD = struct.Struct("<QI")
FOOT = 4


def install() -> None:
    """To be called before TensorBoard is imported. Raises `ImportError` where it is not there."""
    compat = importlib.import_module("tensorboard.compat")
    marker = types.ModuleType("tensorboard.compat.notf")  # where this module is, TensorBoard uses its stand-in
    sys.modules[marker.__name__] = compat.notf = marker  # type: ignore[attr-defined]
    stub = importlib.import_module("tensorboard.compat.tensorflow_stub")
    stub.pywrap_tensorflow.PyRecordReader_New = RecordReader
    processing = "tensorboard.backend.event_processing."
    loader = importlib.import_module(processing + "event_file_loader").EventFileLoader
    run = importlib.import_module(processing + "plugin_event_accumulator").EventAccumulator
    runs = importlib.import_module(processing + "plugin_event_multiplexer").EventMultiplexer
    watcher = importlib.import_module(processing + "directory_watcher")
    loader.Load = continuing(loader.Load)
    run._ProcessEvent = counted(with_few_tags(run._ProcessEvent))
    run.AllSummaryMetadata = of_tags_with_values(run.AllSummaryMetadata)
    run.SummaryMetadata = of_tag_with_value(run.SummaryMetadata)
    run.Reload = skipping(run.Reload, lambda one: str(one.path), passing=watcher.DirectoryDeletedError)
    runs.AddRun = skipping(runs.AddRun, lambda one: "the data folder", passing=())


class Broken(Exception):
    """The file has no readable record at this place, and none after it."""


class RecordReader:
    """The records of one file, each once, also those that are added later. The file is open only while there is
    something to read, so that thousands of files can be followed. Interface: TensorFlow's `PyRecordReader_New`."""

    def __init__(
        self, filename: bytes, start_offset: int = 0, compression_type: Any = None, status: Any = None
    ) -> None:
        self._path = filename
        self._offset = start_offset
        self._file: Optional[BinaryIO] = None
        self._record = b""
        self._is_broken = False

    def GetNext(self) -> None:
        """Raises `OutOfRangeError` where there is none (yet)."""
        try:
            found = None if self._is_broken else self._next()
        except Broken as error:
            self._is_broken = True
            sys.stderr.write(
                "%s: %s. What follows in it is not shown.\n" % (self._path.decode(errors="replace"), error)
            )
            found = None
        except OSError:
            found = None  # it was removed
        if found is None:
            if self._file is not None:
                self._file.close()
                self._file = None
            errors = importlib.import_module("tensorboard.compat.tensorflow_stub.errors")
            raise errors.OutOfRangeError(None, None, "no more events")
        self._record = found

    def record(self) -> bytes:
        return self._record

    def _next(self) -> Optional[bytes]:
        if self._file is None:
            size = os.stat(self._path).st_size
            if size < self._offset:
                self._offset = 0  # it was written again
            if size == self._offset:
                return None
            self._file = open(self._path, "rb")  # noqa: SIM115 - closed when it was read to its end
            self._file.seek(self._offset)
        head = self._file.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        length, checksum = HEAD.unpack(head)
        if checksum != masked_crc32c(head[:8]):
            raise Broken("the record at byte %d is damaged" % self._offset)
        if length > MOST_RECORD:
            raise Broken("the record at byte %d has %d bytes, more than %d" % (self._offset, length, MOST_RECORD))
        data = self._file.read(length + FOOT)
        if len(data) < length + FOOT:
            return None
        self._offset += HEAD.size + len(data)
        return data[:-FOOT]


def continuing(load: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """The same generator of events, which continues behind one that cannot be read."""

    def call(loader: Any) -> Iterator[Any]:
        for _ in range(MOST_SKIPPED):
            try:
                yield from load(loader)
                return
            except Exception as error:  # noqa: BLE001 - whatever a file of a user causes, the others are read on
                say_skipped(str(getattr(loader, "_file_path", "an event file")), error)

    return call


def skipping(function: Callable[..., Any], name_of: Callable[[Any], str], *, passing: Any) -> Callable[..., Any]:
    """The same method, which does not raise, apart from `passing`."""

    def call(one: Any, *words: Any, **named: Any) -> Any:
        try:
            return function(one, *words, **named)
        except passing:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            say_skipped(name_of(one), error)
            return one

    return call


class Tags:
    """Those of all runs that are kept; of a run that is gone, because its folder was removed, none. For several
    threads."""

    def __init__(self) -> None:
        self._known: "weakref.WeakKeyDictionary[Any, Set[str]]" = weakref.WeakKeyDictionary()
        self._total = 0
        self._lock = threading.Lock()

    def takes(self, run: Any, tag: str) -> bool:
        """Whether a value of this tag is kept."""
        with self._lock:
            known = self._known.setdefault(run, set())
            if tag in known:
                return True
            if self._total >= MOST_TAGS:
                self._total = sum(map(len, self._known.values()))
            if len(known) >= MOST_TAGS_OF_RUN or self._total >= MOST_TAGS:
                return False
            known.add(tag)
            self._total += 1
            return True


def with_few_tags(process: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same method, which leaves out values of tags that are too many: TensorBoard keeps some kilobytes of each, and
    a small file can have a million."""
    tags = Tags()

    def call(one: Any, event: Any) -> Any:
        kept = [value for value in event.summary.value if tags.takes(one, value.tag)]
        if len(kept) != len(event.summary.value):
            say_skipped(str(one.path), ValueError("more than %d tags, or %d in all" % (MOST_TAGS_OF_RUN, MOST_TAGS)))
            del event.summary.value[:]
            event.summary.value.extend(kept)
        return process(one, event)

    return call


def has_values(run: Any, tag: str) -> bool:
    """Whether a value of it can be shown. TensorBoard notes what is said about a tag before it keeps the first value,
    which may never come, and asks for the values of all tags that it has noted."""
    values = run.tensors_by_tag.get(tag)
    return values is not None and bool(values.Keys())


def of_tags_with_values(metadata: Callable[[Any], Dict[str, Any]]) -> Callable[[Any], Dict[str, Any]]:
    """The same method, which leaves out tags without a value."""

    def call(one: Any) -> Dict[str, Any]:
        return {tag: found for tag, found in metadata(one).items() if has_values(one, tag)}

    return call


def of_tag_with_value(metadata: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """The same method, which knows no tag without a value. Raises `KeyError`, as for any tag that is unknown."""

    def call(one: Any, tag: str) -> Any:
        if not has_values(one, tag):
            raise KeyError(tag)
        return metadata(one, tag)

    return call


_READ = [0]
_READ_LOCK = threading.Lock()


def events_read() -> int:
    """How many events TensorBoard has taken in since its start."""
    return _READ[0]


def counted(process: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same method; each event counts when it is there to be shown."""

    def call(one: Any, event: Any) -> Any:
        try:
            return process(one, event)
        finally:
            with _READ_LOCK:
                _READ[0] += 1

    return call


_SAID: Set[str] = set()


def say_skipped(what: str, error: Exception) -> None:
    """Once, and of not too many different ones."""
    line = "%s: something in it was skipped (%s: %.200s).\n" % (what, type(error).__name__, error)
    if len(_SAID) < MOST_SKIPPED and line not in _SAID:
        _SAID.add(line)
        sys.stderr.write(line)
