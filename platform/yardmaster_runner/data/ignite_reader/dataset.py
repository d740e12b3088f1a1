"""`tf.data` datasets of what lies in Apache Ignite: `ignite(…)`, and `IgniteDataset(…)` under its old name.

    from yardmaster_runner import data

    train = data.ignite("IMAGES", batch=64, shapes={"val.pixels": (28, 28)})

NumPy and TensorFlow are imported when a dataset is asked for.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from yardmaster_runner.data.damage import watch
from yardmaster_runner.data.ignite_reader.access import DEFAULT_PORT, Access, addresses_of, tls_context
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError
from yardmaster_runner.data.inputs import Share
from yardmaster_runner.data.passes import CALLS, look_after

CHUNK_ROWS = 1024
"""Rows that go to TensorFlow at once, at least."""
PREFIX = "IGNITE_DATASET_"


def ignite(
    cache: str = "",
    batch: Optional[int] = 32,
    *,
    query: str = "",
    arguments: Sequence[Any] = (),
    schema: str = "PUBLIC",
    host: str = "localhost",
    port: int = DEFAULT_PORT,
    username: Optional[str] = None,
    password: Optional[str] = None,
    certfile: Optional[str] = None,
    keyfile: Optional[str] = None,
    cert_password: Optional[str] = None,
    cafile: Optional[str] = None,
    fields: Optional[Sequence[str]] = None,
    shapes: Optional[Mapping[str, Tuple[int, ...]]] = None,
    strings: Sequence[str] = (),
    nulls: Optional[Mapping[str, Any]] = None,
    partitions: Union[str, Sequence[int], None] = None,
    share: Share = None,
    local: bool = False,
    partitioned: Optional[bool] = None,
    page_rows: Optional[int] = None,
    connections: int = 4,
    drop_remainder: bool = False,
) -> Any:
    """A `tf.data.Dataset` of the rows of a cache, `{"key": …, "val": …}`, or of an SQL query, `{column: …}`. An object
    is a dict of its fields, an array of any length is ragged in a batch.

    `batch` None: single rows. `fields`: paths of those that are wanted (`"val.name"`); `shapes`: of arrays that are all
    of one shape; `strings`: arrays of bytes that become strings; `nulls`: what stands for a null, by path: without it a
    null is an error.

    A task reads its part of the partitions, as IGNITE_DATASET_PART or `partitions` list them, or as `share` says
    (`"all"`, or `(index, count)`), else divided among the tasks that train. `local`: those that the node at `host`
    holds. Each row comes once in a pass, in no order. A query of one table is divided in the same way, others are read
    by every task as a whole, unless `partitioned` says otherwise.
    What the environment says in IGNITE_DATASET_HOST, …_PORT, …_USERNAME, …_PASSWORD, …_CERTFILE, …_KEYFILE,
    …_CERT_PASSWORD, …_CAFILE, …_LOCAL and …_CACHE_NAME comes before what is given here. Raises `IgniteDataError` and
    `IgniteUnavailable`, which say what to do."""
    from yardmaster_runner.data.ignite_reader.layout import Wishes

    wishes = Wishes(fields, dict(shapes or {}), tuple(strings), dict(nulls or {}))
    access = _access(host, port, username, password, certfile, keyfile, cert_password, cafile)
    source = _opened(access, cache, query, tuple(arguments), schema, wishes, {
        "partitions": partitions, "share": share, "is_local": local or bool(_said("LOCAL", "")), "page_rows": page_rows,
        "is_partitioned": partitioned, "connections": max(1, connections),
    })  # fmt: skip
    return _dataset(source, batch, drop_remainder)


class IgniteDataset:
    """The rows of a cache one by one, by the arguments that this class had in TensorFlow's own `contrib.ignite` and in
    `tensorflow-io`. Making one gives a `tf.data.Dataset`. What else there is has `ignite`."""

    def __new__(
        cls,
        cache_name: str,
        host: str = "localhost",
        port: int = DEFAULT_PORT,
        local: bool = False,
        part: int = -1,
        page_size: int = 100,
        username: Optional[str] = None,
        password: Optional[str] = None,
        certfile: Optional[str] = None,
        keyfile: Optional[str] = None,
        cert_password: Optional[str] = None,
    ) -> Any:
        from yardmaster_runner.data.ignite_reader.layout import Wishes

        access = _access(host, port, username, password, certfile, keyfile, cert_password, None)
        rows = int(_said("PAGE_SIZE", str(page_size)))
        source = _opened(access, cache_name, "", (), "", Wishes(has_unsigned_bytes=True), {
            "partitions": None if part < 0 else [part], "share": None, "is_local": local or bool(_said("LOCAL", "")),
            "page_rows": rows, "connections": 4,
        })  # fmt: skip
        return _dataset(source, None, False)


def _access(
    host: str,
    port: int,
    username: Optional[str],
    password: Optional[str],
    certfile: Optional[str],
    keyfile: Optional[str],
    cert_password: Optional[str],
    cafile: Optional[str],
) -> Access:
    text = _said("PORT", str(port))
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise IgniteDataError("%sPORT is %r: expected a number from 1 to 65535" % (PREFIX, text))
    context = tls_context(
        _said("CERTFILE", certfile),
        _said("KEYFILE", keyfile),
        _said("CERT_PASSWORD", cert_password),
        _said("CAFILE", cafile),
    )
    addresses = addresses_of(_said("HOST", host), int(text))
    return Access(addresses, _said("USERNAME", username), _said("PASSWORD", password), context)


def _said(name: str, given: Any) -> Any:
    """The environment's word, else the script's."""
    return os.environ.get(PREFIX + name) or given


def _opened(
    access: Access,
    cache: str,
    query: str,
    arguments: Tuple[Any, ...],
    schema: str,
    wishes: Any,
    chosen: Mapping[str, Any],
) -> Any:
    from yardmaster_runner.data.ignite_reader.query import Query
    from yardmaster_runner.data.ignite_reader.source import CacheSource, QuerySource, Selection

    selection = Selection(**chosen)
    if query:
        return QuerySource(access, Query(query, arguments, schema), wishes, selection, os.environ)
    name = _said("CACHE_NAME", cache)
    if not name:
        raise IgniteDataError("Neither a cache nor a query is given: ignite('NAME'), or ignite(query='SELECT …').")
    return CacheSource(access, name, wishes, selection, os.environ)


class _Passes:
    """The passes over one source. TensorFlow's threads take the rows (see `passes`)."""

    def __init__(self, pages: Callable[[], Iterator[Any]]) -> None:
        self._pages = pages
        self._going = weakref.WeakSet()  # type: ignore[var-annotated]  # Python 3.8 cannot say of what
        look_after(self)

    @property
    def is_going(self) -> bool:
        """Whether a pass has not been read to its end."""
        return bool(self._going)

    def one(self) -> Iterator[Tuple[Any, ...]]:
        """One pass, as flat arrays."""
        token = _Token()
        self._going.add(token)
        pages = self._pages()
        while True:
            with CALLS:
                CALLS.check()
                found = next(pages, None)
            if found is None:
                self._going.discard(token)
                return
            yield _flat(found.columns)


class _Token:
    """A pass that is not over: gone with the generator that holds it."""


def _dataset(source: Any, batch: Optional[int], drop_remainder: bool) -> Any:
    import tensorflow as tf

    from yardmaster_runner.data.ignite_reader.layout import leaves, packed
    from yardmaster_runner.data.ignite_reader.source import FEW_ROWS, PAGE_BYTES, batches, chunks

    has_long_rows = source.row_bytes * FEW_ROWS > PAGE_BYTES
    at_once = batch or 1 if has_long_rows else max(CHUNK_ROWS, batch or 0)
    cuts_itself = has_long_rows and batch is not None

    def pages() -> Iterator[Any]:
        if cuts_itself:
            return batches(source, at_once, drop_remainder=drop_remainder)
        return chunks(source, at_once)

    watch(list, "")
    parts = list(leaves(source.layout))
    read = tf.data.Dataset.from_generator(_Passes(pages).one, output_signature=tuple(_signature(tf, parts)))
    read = read.map(lambda *flat: packed(source.layout, _columns(tf, parts, iter(flat))))
    if batch is None:
        read = read.unbatch()
    elif not cuts_itself:
        read = read.rebatch(batch, drop_remainder=drop_remainder)
    options = tf.data.Options()
    # Who reads which partitions is decided here: a strategy must not divide them once more.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return read.prefetch(2 if has_long_rows else tf.data.AUTOTUNE).with_options(options)


def _signature(tf: Any, parts: Sequence[Any]) -> Iterator[Any]:
    """Of each column: its values, and where each row begins in them, where rows differ in length."""
    for one in parts:
        dtype = tf.as_dtype(one.dtype)
        if one.kind in ("scalar", "text"):
            yield tf.TensorSpec((None,), dtype)
        elif one.kind == "array" and one.shape is not None:
            yield tf.TensorSpec((None, *one.shape), dtype)
        else:
            yield tf.TensorSpec((None,), dtype)
            yield tf.TensorSpec((None,), tf.int64)


def _columns(tf: Any, parts: Sequence[Any], flat: Iterator[Any]) -> Iterator[Any]:
    for one in parts:
        values = next(flat)
        if one.kind == "texts" or (one.kind == "array" and one.shape is None):
            values = tf.RaggedTensor.from_row_splits(values, next(flat), validate=False)
        yield values


def _flat(columns: Sequence[Any]) -> Tuple[Any, ...]:
    from yardmaster_runner.data.ignite_reader.columns import Ragged, Text, solid

    found: List[Any] = []
    for one in columns:
        if isinstance(one, Text):
            found.append(one.objects())
        elif isinstance(one, Ragged):
            found.extend((one.values, one.splits))
        else:
            found.append(solid(one))
    return tuple(found)
