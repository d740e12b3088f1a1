"""`tf.data` datasets of prepared records: in a job by the input's name, anywhere by a folder's path."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Callable, List, Optional, Tuple, Union

from yardmaster_runner.data.damage import explain, watch
from yardmaster_runner.data.description import JSON_LINES, Description, is_shard
from yardmaster_runner.data.features import Parser, Wanted
from yardmaster_runner.data.inputs import DataError, Input, Share, description_of, find
from yardmaster_runner.data.passes import Passes, listed

SHUFFLED = 10_000
"""Records that are shuffled together, at most."""
SHUFFLED_BYTES = 256 << 20
INTERLEAVED = 4
"""Shards that are read at the same time where the order does not matter."""


@dataclass(frozen=True)
class Source:
    """Shards to read, of one input: their paths in it. `records` of all together; None: not known."""

    found: Input
    paths: List[str]
    sizes: List[int]
    compression: str
    records: Optional[int] = None


def dataset(
    name: str = "",
    split: str = "train",
    batch: Optional[int] = 32,
    *,
    shuffle: Union[bool, int, None] = None,
    seed: Optional[int] = None,
    repeat: Union[bool, int] = False,
    share: Share = None,
    drop_remainder: bool = False,
    decode_images: bool = True,
    image_size: Optional[Tuple[int, int]] = None,
    channels: int = 3,
    as_dict: bool = False,
    interleave: Optional[int] = None,
) -> Any:
    """A `tf.data.Dataset` of the parsed examples of one split of a prepared dataset.

    `name`: the input's or its dataset's name, or the path of a prepared folder; empty: the job's only input.
    Examples are `(features, label)` where the dataset has a label, else a dict of features; a single feature beside the
    label is a tensor instead of a dict. `as_dict`: always a dict of all. Images are decoded to `uint8`, to `float32`
    where `image_size` scales them.

    `batch` None: single examples. `shuffle` None: the split `train` only; a number: the records shuffled together.
    `repeat` True: without end. `share`: `"all"` shards, this task's part of them (`"shards"`), `(index, count)`, or as
    the job says. `interleave`: shards that are read at the same time.

    Raises `DataError`, which names the file and what to do.
    """
    found = find(name)
    description = description_of(found)
    import tensorflow as tf

    source = _source(found, description, split, share)
    shuffled = split == "train" if shuffle is None else shuffle
    read = _records(tf, source, shuffle=bool(shuffled), seed=seed, interleave=interleave)
    if source.records is not None:
        read = read.apply(tf.data.experimental.assert_cardinality(source.records))
    if shuffled:
        read = read.shuffle(_buffer(source, shuffled), seed=seed)
    if repeat:
        read = read.repeat(None if repeat is True else int(repeat))
    parser = Parser(tf, description, Wanted(decode_images, image_size, channels, as_dict))
    read = _parsed(tf, read, parser, batch, drop_remainder)
    return read.prefetch(tf.data.AUTOTUNE).with_options(_options(tf))


def records(
    name: str = "",
    split: Optional[str] = None,
    *,
    shuffle: bool = False,
    seed: Optional[int] = None,
    share: Share = None,
    interleave: Optional[int] = None,
) -> Any:
    """A `tf.data.Dataset` of serialized records: of one split of a prepared dataset, else of all TFRecord files of an
    input (`.tfrecord`, `.tfrecord.gz`). Raises `DataError`."""
    found = find(name)
    import tensorflow as tf

    source = _plain_source(found, share) if split is None else _source(found, description_of(found), split, share)
    read = _records(tf, source, shuffle=shuffle, seed=seed, interleave=interleave)
    return read.prefetch(tf.data.AUTOTUNE).with_options(_options(tf))


def _source(found: Input, description: Description, split: str, share: Share) -> Source:
    if split not in description.splits:
        there = ", ".join(sorted(description.splits)) or "none"
        raise DataError("The dataset has no split %r. Its splits: %s." % (split, there))
    if description.file_format == JSON_LINES:
        message = (
            "The dataset has JSON lines, not TFRecord files. Read %s and its other files line by line, or prepare it."
        )
        first = next((one.path for one in description.splits[split]), "the split")
        raise DataError(message % first)
    index, count = found.part_for(share)
    if found.is_partial and (index, count) != found.part:
        found = replace(found, is_streamed=True)
    shards = description.splits[split]
    mine = shards[index::count]
    if not mine:
        message = "The split %r has %d shards for %d tasks, so task %d has none. Prepare it with smaller shards "
        message += '(--shard-bytes), or read all: share="all".'
        raise DataError(message % (split, len(shards), count, index))
    if not found.is_streamed:
        for one in mine:
            _check(os.path.join(found.folder, one.path), one.path, one.size, description.compression)
    sizes = [one.size for one in mine]
    return Source(found, [one.path for one in mine], sizes, description.compression, sum(one.records for one in mine))


def _check(where: str, path: str, size: int, compression: str) -> None:
    """A shard of another size than described is not what was prepared."""
    try:
        there = os.path.getsize(where)
    except OSError as error:
        raise DataError("The shard %s is missing: %s." % (path, error.strerror)) from error
    if there != size:
        message = "The shard %s has %d bytes, the description says %d: %s."
        raise DataError(message % (path, there, size, explain(where, compression)))


def _plain_source(found: Input, share: Share) -> Source:
    index, count = found.part_for(share)
    if found.is_partial and (index, count) == found.part:
        index, count = 0, 1  # the others were not copied
    elif found.is_partial:
        found = replace(found, is_streamed=True)
    there = sorted(listed(found) if found.is_streamed else _files_in(found.folder))
    if not there and found.is_partial:
        raise DataError("There are fewer TFRecord files than tasks that train, so this task has none.")
    if not there:
        raise DataError("%s has no TFRecord files (.tfrecord, .tfrecord.gz)." % (found.name or found.folder))
    kinds = {"GZIP" if path.lower().endswith(".gz") else "" for path, _ in there}
    if len(kinds) > 1:
        raise DataError("%s has compressed and plain TFRecord files. Use one kind." % (found.name or found.folder))
    mine = there[index::count]
    if not mine:
        raise DataError("There are %d TFRecord files for %d tasks, so task %d has none." % (len(there), count, index))
    return Source(found, [path for path, _ in mine], [size for _, size in mine], kinds.pop())


def _files_in(folder: str) -> List[Tuple[str, int]]:
    found = []
    for top, _, names in os.walk(folder):
        for name in filter(is_shard, names):
            where = os.path.join(top, name)
            found.append((os.path.relpath(where, folder).replace(os.sep, "/"), os.path.getsize(where)))
    return found


def _records(tf: Any, source: Source, *, shuffle: bool, seed: Optional[int], interleave: Optional[int]) -> Any:
    """Serialized records, by TensorFlow's own reader."""
    at_once = interleave or (INTERLEAVED if shuffle else 1)
    found = source.found
    if found.is_streamed:
        # A reader that looks ahead opens up to twice as many.
        most = found.stream_bytes // (3 * max([1, *source.sizes]))
        at_once = max(1, min(at_once, most))
        passes = Passes(found, source.paths, shuffle=shuffle, seed=seed)
        watch(passes.open_shards, source.compression)
        return _interleaved(tf, _tickets(tf, passes), _reader_of_ticket(tf, passes, source), at_once, seed)
    where = [os.path.join(found.folder, path) for path in source.paths]
    watch(lambda: where, source.compression)
    files = tf.data.Dataset.from_tensor_slices(where)
    if shuffle:
        files = files.shuffle(len(where), seed=seed)

    def reader(path: Any) -> Any:
        return tf.data.TFRecordDataset(path, source.compression)

    return _interleaved(tf, files, reader, at_once, seed)


def _interleaved(tf: Any, files: Any, reader: Callable[..., Any], at_once: int, seed: Optional[int]) -> Any:
    if at_once == 1:
        return files.flat_map(reader)
    return files.interleave(
        reader,
        cycle_length=at_once,
        block_length=16,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=seed is not None,
    )


def _tickets(tf: Any, passes: Passes) -> Any:
    number = tf.TensorSpec((), tf.int64)
    return tf.data.Dataset.from_generator(passes.one, output_signature=(number, number))


def _reader_of_ticket(tf: Any, passes: Passes, source: Source) -> Callable[..., Any]:
    """Opens a shard once it is here, and says when it was read to its end."""

    def get(number: int, shard: int) -> bytes:
        return os.fsencode(passes.get(number, shard))

    def release(number: int, shard: int) -> bytes:
        passes.release(number, shard)
        return b""

    def reader(number: Any, shard: Any) -> Any:
        path = tf.ensure_shape(tf.numpy_function(get, [number, shard], tf.string), ())
        read = tf.data.TFRecordDataset(path, source.compression)

        def at_end(number: Any, shard: Any) -> Any:
            return tf.ensure_shape(tf.numpy_function(release, [number, shard], tf.string), ())

        ending = tf.data.Dataset.from_tensors((number, shard)).map(at_end).filter(lambda _: False)
        return read.concatenate(ending)

    return reader


def _buffer(source: Source, shuffled: Union[bool, int]) -> int:
    """Records that are shuffled together: as many as were asked for, else no more than fit."""
    if shuffled is not True:
        return max(1, int(shuffled))
    count = source.records or SHUFFLED
    mean = max(1, sum(source.sizes) * (4 if source.compression else 1) // max(1, count))
    return max(1, min(count, SHUFFLED, SHUFFLED_BYTES // mean))


def _parsed(tf: Any, read: Any, parser: Parser, batch: Optional[int], drop_remainder: bool) -> Any:
    if batch is None:
        return read.map(parser.one, num_parallel_calls=tf.data.AUTOTUNE)
    if not parser.is_one_by_one:
        read = read.batch(batch, drop_remainder=drop_remainder)
        return read.map(parser.many, num_parallel_calls=tf.data.AUTOTUNE)
    read = read.map(parser.one, num_parallel_calls=tf.data.AUTOTUNE)
    return (read.ragged_batch if parser.is_ragged else read.batch)(batch, drop_remainder=drop_remainder)


def _options(tf: Any) -> Any:
    """Who reads which shards is decided here: a strategy must not divide them once more."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options
