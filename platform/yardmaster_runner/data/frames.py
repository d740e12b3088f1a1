"""Datasets of the portal as DataFrames of Spark, and DataFrames as TFRecord files.

Executors read and write records in Python alone: TensorFlow cannot begin a cluster in a process that has run one of its
operations, and Spark's Python processes live on from one task to the next.
"""

from __future__ import annotations

import importlib
import os
import uuid
from functools import partial
from itertools import islice
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from yardmaster_runner.data.description import is_shard
from yardmaster_runner.data.example_bytes import Values, example
from yardmaster_runner.data.examples import BadRecord, framed, parsed, records_in, records_of
from yardmaster_runner.data.inputs import DataError, Input, description_of, find, inputs
from yardmaster_runner.data.portal_files import TOKEN, URL, Portal, beginning, opened, portal_in

SAMPLE = 100
"""Records of each file that the driver reads to find out which columns there are."""
SAMPLED_FILES = 8
TYPES = {"int64": "LongType", "float": "FloatType", "bytes": "BinaryType"}
KINDS = {
    "boolean": "int64", "tinyint": "int64", "smallint": "int64", "int": "int64", "bigint": "int64",
    "float": "float", "double": "float", "string": "bytes", "binary": "bytes",
}  # fmt: skip
Column = Tuple[str, str, bool]
"""Name, kind of its values, and whether it is an array."""
Records = Tuple[str, Iterator[Tuple[int, bytes]]]
"""A file's path, for errors, and its records, each with the byte at which it begins."""


def dataframe(
    spark: Any, name: str = "", split: Optional[str] = None, *, arrays: Iterable[str] = (), scalars: Iterable[str] = ()
) -> Any:
    """A DataFrame of the examples in the TFRecord files of an input, one partition for each file.

    `spark`: the session. `name`: the input's or its dataset's name, or the path of a folder; empty: the job's only
    input. `split`: of a prepared dataset; None: all files (`.tfrecord`, `.tfrecord.gz`).

    The first records say which columns there are: whole numbers, floats or bytes, one value or an array of them, null
    where a record lacks them. `arrays` and `scalars` name columns of which they do not tell enough. A job that spans
    machines reads the files of the input on each of them. Executors of a registered cluster read them through the
    portal; there the input may also be streamed: then the driver has no copy.

    Raises `DataError`. A record that cannot be read, or does not fit, ends the query with the name of its file and the
    byte at which it begins."""
    found, portal = find(name), None
    if found.has_shards_elsewhere:
        portal = _portal_of(spark)
        if portal is None:
            words = "The input %r is not copied to tasks. Set its mode to folder and its share to all."
            raise DataError(words % found.name)
    known = None if split is None else [one.path for one in _shards(name, split)]
    paths = _paths(found.folder, known) if portal is None else known or _paths_at(portal, found)
    columns = _columns([_sample(found, portal, path) for path in paths[:SAMPLED_FILES]], set(arrays), set(scalars))
    read = partial(_rows, name, found.folder, found.version, columns)
    rows = spark.sparkContext.parallelize(paths, len(paths)).flatMap(read)
    return spark.createDataFrame(rows, _schema(columns), verifySchema=False)


def write_dataset(frame: Any, folder: str) -> int:
    """Write the rows of a DataFrame as `tf.train.Example`s into TFRecord files, one for each partition that has rows.
    Returns how many rows there were. `folder` is made, and has to be empty.

    Columns are numbers, booleans, texts, bytes, or arrays of them; null is left out. Executors that have the same disk
    as the driver write; the rows of others come to the driver, one partition at a time. Raises `DataError`."""
    kinds = _kinds_of(frame)
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise DataError("The folder %s is not empty. Write into a new one." % folder)
    mark = os.path.join(folder, ".%s" % uuid.uuid4().hex)
    open(mark, "xb").close()  # executors find it where they share the driver's disk
    try:
        context = frame.sparkSession.sparkContext
        rows = frame.rdd
        written = dict(rows.mapPartitionsWithIndex(partial(_write_there, folder, mark, kinds)).collect())
        for index in sorted(one for one, count in written.items() if count is None):
            records = context.runJob(rows, partial(_encoded, kinds), [index])
            written[index] = _write(folder, index, records)
    finally:
        os.remove(mark)
    return sum(count or 0 for count in written.values())


def _shards(name: str, split: str) -> Sequence[Any]:
    splits = description_of(find(name)).splits
    if split not in splits:
        raise DataError("The dataset has no split %r. Its splits: %s." % (split, ", ".join(sorted(splits)) or "none"))
    return splits[split]


def _paths(folder: str, known: Optional[List[str]]) -> List[str]:
    """Of the TFRecord files, relative to the folder."""
    found = known
    if found is None:
        below = (os.path.join(top, name) for top, _, names in os.walk(folder) for name in names if is_shard(name))
        found = sorted(os.path.relpath(one, folder).replace(os.sep, "/") for one in below)
    if not found:
        raise DataError("%s has no TFRecord files (.tfrecord, .tfrecord.gz)." % folder)
    return found


def _paths_at(portal: Portal, found: Input) -> List[str]:
    """The same of an input that only the portal has."""
    paths = [one for one in portal.listed(found.version) if is_shard(one)]
    if not paths:
        raise DataError("The input %r has no TFRecord files (.tfrecord, .tfrecord.gz)." % found.name)
    return paths


def _portal_of(spark: Any) -> Optional[Portal]:
    """The one that the executors of this session may ask; None: their files are beside them."""
    settings = spark.sparkContext.getConf()
    return portal_in({name: settings.get("spark.executorEnv.%s" % name, "") for name in (URL, TOKEN)})


def _sample(found: Input, portal: Optional[Portal], path: str) -> Records:
    """A file of which the first records are read, with its name for errors."""
    where = os.path.join(found.folder, path)
    if portal is None or os.path.isfile(where):
        return where, _read(where)
    return path, _checked(lambda: records_in(beginning(portal, found.version, path), path))


def _columns(files: Sequence[Records], arrays: "set[str]", scalars: "set[str]") -> List[Column]:
    """By the first records of these files. Raises `DataError`."""
    kinds: Dict[str, str] = {}
    single: Dict[str, bool] = {}
    for path, records in files:
        for at, record in islice(records, SAMPLE):
            for name, (kind, values) in _parsed(path, at, record).items():
                if kinds.setdefault(name, kind) != kind:
                    words = "%s: the record at byte %d has %s in %s, others have %s."
                    raise DataError(words % (path, at, kind, name, kinds[name]))
                single[name] = single.get(name, True) and len(values) == 1
    if not kinds:
        raise DataError("The first files have no records with features, so there are no columns: %s." % files[0][0])
    unknown = sorted((arrays | scalars) - kinds.keys())
    if unknown:
        raise DataError("No feature is called %s. There are: %s." % (", ".join(unknown), ", ".join(sorted(kinds))))
    return [(name, kinds[name], name in arrays or not (single[name] or name in scalars)) for name in sorted(kinds)]


def _schema(columns: Sequence[Column]) -> Any:
    types = importlib.import_module("pyspark.sql.types")
    schema = types.StructType()
    for name, kind, is_array in columns:
        one = getattr(types, TYPES[kind])()
        schema.add(name, types.ArrayType(one, False) if is_array else one, True)
    return schema


def _rows(name: str, folder: str, version: str, columns: Sequence[Column], path: str) -> Iterator[Tuple[Any, ...]]:
    """The rows of one file, on an executor: from its own copy of the input where it has one, else from the driver's
    where they share a disk, else through the portal."""
    own = find(name).folder if inputs() else folder
    where = os.path.join(own if os.path.isfile(os.path.join(own, path)) else folder, path)
    for at, record in _read(where) if os.path.isfile(where) else _read_there(version, path, where):
        features = _parsed(where, at, record)
        try:
            yield tuple(_cell(features.get(column[0]), column) for column in columns)
        except ValueError as error:
            raise DataError("%s: the record at byte %d %s" % (where, at, error)) from None


def _cell(found: Optional[Values], column: Column) -> Any:
    """The value of a column in a row. Raises `ValueError`, in words that continue "the record"."""
    name, kind, is_array = column
    if found is None:
        return None
    if found[0] != kind:
        raise ValueError("has %s in %s, the first records have %s." % (found[0], name, kind))
    values = [bytearray(one) for one in found[1]] if kind == "bytes" else list(found[1])  # type: ignore[arg-type]
    if is_array:
        return values
    if len(values) > 1:
        words = "has %d values in %s, the first records have one: call dataframe with arrays=[%r]."
        raise ValueError(words % (len(values), name, name))
    return values[0] if values else None


def _read(path: str) -> Iterator[Tuple[int, bytes]]:
    yield from _checked(lambda: records_of(path))


def _read_there(version: str, path: str, where: str) -> Iterator[Tuple[int, bytes]]:
    """The records of a file that is not on this machine."""
    portal = portal_in(os.environ)
    if not version or portal is None:
        message = "%s is not on this machine. Read an input of the job: executors elsewhere get those from the portal."
        raise DataError(message % where)
    file = opened(portal, version, path)
    yield from _checked(lambda: records_in(file, path))


def _checked(begin: Callable[[], Iterator[Tuple[int, bytes]]]) -> Iterator[Tuple[int, bytes]]:
    try:
        yield from begin()
    except (BadRecord, OSError) as error:
        raise DataError(str(error)) from None


def _parsed(path: str, at: int, record: bytes) -> Mapping[str, Values]:
    try:
        return parsed(record)
    except ValueError as error:
        raise DataError("%s: the record at byte %d cannot be read: %s" % (path, at, error)) from None


def _kinds_of(frame: Any) -> List[Tuple[str, str]]:
    """Name and kind of each column. Raises `DataError` for one that an Example cannot have."""
    found = []
    for one in frame.schema.fields:
        kind = getattr(one.dataType, "elementType", one.dataType).simpleString()
        if kind not in KINDS:
            words = "The column %s has the type %s. Write numbers, booleans, texts, bytes or arrays of them: select or "
            raise DataError((words + "cast the columns first.") % (one.name, one.dataType.simpleString()))
        found.append((one.name, KINDS[kind]))
    return found


def _write_there(
    folder: str, mark: str, kinds: Sequence[Tuple[str, str]], index: int, rows: Iterator[Any]
) -> Iterator[Tuple[int, Optional[int]]]:
    """Write a partition on an executor; None where it does not see the driver's folder."""
    yield index, _write(folder, index, _encoded(kinds, rows)) if os.path.exists(mark) else None


def _write(folder: str, index: int, records: Iterable[bytes]) -> int:
    """Spark may do a partition twice at once: the file has its name when it is complete."""
    path = os.path.join(folder, "part-%05d.tfrecord" % index)
    unfinished = os.path.join(folder, ".%s" % uuid.uuid4().hex)
    count = 0
    try:
        with open(unfinished, "xb") as file:
            for record in records:
                file.write(framed(record))
                count += 1
        if count:
            os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)
    return count


def _encoded(kinds: Sequence[Tuple[str, str]], rows: Iterable[Any]) -> Iterator[bytes]:
    for row in rows:
        yield example({name: (kind, _values(kind, row[name])) for name, kind in kinds if row[name] is not None})


def _values(kind: str, cell: Any) -> List[Any]:
    values = cell if isinstance(cell, (list, tuple)) else [cell]
    if kind == "bytes":
        return [one.encode() if isinstance(one, str) else bytes(one) for one in values]
    return [int(one) if kind == "int64" else float(one) for one in values]
