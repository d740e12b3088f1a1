"""Examples of the data that a model was trained on, for the form of "Try it", and the names of its classes.

Of each dataset that its job read one file is looked into: the first records of a TFRecord file, within bounds of bytes
and of records. What the user may not see is not looked at.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apps.accounts.models import User
from apps.datasets.selectors import DATASETS
from apps.datasets.unpacked import start_of
from apps.errors import DomainError, NotFound
from apps.registry.models import ModelVersion
from apps.serving.form_fields import Field, Form
from apps.stores import storage
from apps.uploads.selectors import StoredFile
from apps.uploads.versioned.selectors import files_of, version_for
from yardmaster.errors import Unavailable
from yardmaster.formats.tf_example import Feature, NotAnExample, parse_example
from yardmaster.formats.tfrecord import Damaged, read_records
from yardmaster.storage.base import StorageError
from yardmaster_runner.data.description import is_shard

MOST_RECORDS = 50
PATIENCE = 2.0
"""Seconds for all inputs together: the web process reads the records, and one of 100,000 fields takes 40 ms."""
MOST_FILES = 2000
_LOOKED_AT = 4 << 20
"""Bytes of a file that are read at most, and of what is unpacked of them."""
_VALUES = 20_000
_LONGEST_EXAMPLE = 200_000
"""Letters of an example that is shown to be edited."""
_UNREADABLE = (StorageError, Unavailable, DomainError)
"""Of a registered bucket the credentials may be gone, too."""
_FIRST = ("test", "valid", "eval", "train")


def sample_in(form: Form, user: User, version: ModelVersion, number: int) -> Form | None:
    """The form filled with one example of the data, the `number`th (from 0, again from the first after the last); None
    where no example fits it, of those that can be read in `PATIENCE`."""
    until = time.monotonic() + PATIENCE
    for files in _files_of_inputs(user, version):
        examples = [found for one in _records(files, until) if (found := _filled(form, one)) is not None]
        if examples:
            return examples[number % len(examples)]
        if time.monotonic() > until:
            break
    return None


def classes_of(user: User, version: ModelVersion) -> list[str]:
    """The names of the classes as the data describes them (`dataset.json`); none where it does not, or where that is
    not found in `PATIENCE`: a description may lie on a slow server of others."""
    until = time.monotonic() + PATIENCE
    for files in _files_of_inputs(user, version):
        about = next((one for one in files if one.path == "dataset.json" and one.size <= 1 << 20), None)
        if about is None:
            continue
        try:
            with storage().open_range(about.key) as stream:
                classes = json.loads(stream.read(about.size)).get("classes")
        except (ValueError, AttributeError, RecursionError, *_UNREADABLE):
            classes = None
        if isinstance(classes, list) and all(isinstance(one, str) for one in classes):
            return classes[:100_000]
        if time.monotonic() > until:
            break
    return []


def _files_of_inputs(user: User, version: ModelVersion) -> Iterator[list[StoredFile]]:
    for one in version.source.get("inputs", [])[:20]:
        try:
            data = version_for(DATASETS, user, uuid.UUID(str(one.get("version", ""))))
        except (NotFound, ValueError):
            continue
        yield list(itertools.islice(files_of(data), MOST_FILES))


def _records(files: Sequence[StoredFile], until: float) -> Iterator[Mapping[str, Feature]]:
    """The first records of the file that was most likely kept apart from training; one at least, and none that is begun
    after `until`."""
    shards = [one for one in files if is_shard(one.path) and one.size]
    if not shards:
        return
    file = min(shards, key=lambda one: (next((at for at, word in enumerate(_FIRST) if word in one.path), 9), one.path))
    try:
        with storage().open_range(file.key, 0, _LOOKED_AT) as stream:
            content = stream.read(min(file.size, _LOOKED_AT))
        if file.path.lower().endswith(".gz"):
            content = start_of(content, _LOOKED_AT)
    except _UNREADABLE:
        return
    source = io.BytesIO(content)
    try:
        for record in itertools.islice(read_records(source, longest=1 << 20, check_data=False), MOST_RECORDS):
            yield parse_example(record.data, most=_VALUES)
            if time.monotonic() > until:
                return
    except (Damaged, NotAnExample):
        return


def _filled(form: Form, example: Mapping[str, Feature]) -> Form | None:
    filled = [_field_of(field, example, is_only=len(form.fields) == 1) for field in form.fields]
    done = [field for field in filled if field is not None]
    return replace(form, fields=tuple(done)) if len(done) == len(filled) else None


def _field_of(field: Field, example: Mapping[str, Feature], *, is_only: bool) -> Field | None:
    """The feature of the same name; for the only input any other that fits; for an example all of them."""
    if field.kind == "example":
        return _whole(field, example)
    named = [example[field.name]] if field.name in example else list(example.values()) if is_only else []
    return next((found for one in named if (found := _with(field, one)) is not None), None)


def _whole(field: Field, example: Mapping[str, Feature]) -> Field | None:
    """All features as JSON; None where one was cut off, or they are too long to be edited."""
    shown: dict[str, Any] = {}
    for name, feature in example.items():
        if feature.count != len(feature.values):
            return None
        if feature.dtype != "bytes":
            values = [float(_short(one)) if feature.dtype == "float" else one for one in feature.values]
        elif all(len(one) == size for one, size in zip(feature.values, feature.sizes, strict=False)):  # type: ignore[arg-type]
            values = [_text_or_bytes(bytes(one)) for one in feature.values]  # type: ignore[arg-type]
        else:
            return None
        shown[name] = values[0] if len(values) == 1 else values
    text = json.dumps(shown, ensure_ascii=False)
    return replace(field, values=(text,)) if len(text) <= _LONGEST_EXAMPLE else None


def _text_or_bytes(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode("ascii")}


def _with(field: Field, feature: Feature) -> Field | None:
    if field.kind == "text":
        return _text(field, feature)
    if feature.dtype not in ("float", "int64") or feature.count != len(feature.values) or None in field.shape:
        return None
    if feature.count != math.prod(size or 0 for size in field.shape):
        return None
    if field.kind == "boxes":
        return replace(field, values=tuple(_short(one) for one in feature.values))
    shaped = _shaped([float(_short(one)) for one in feature.values], field.shape)
    return replace(field, values=(json.dumps(shaped),)) if field.kind == "json" else None


def _text(field: Field, feature: Feature) -> Field | None:
    whole = feature.dtype == "bytes" and feature.count == 1 and len(feature.values[0]) == feature.sizes[0]  # type: ignore[arg-type]
    if not whole:
        return None
    try:
        return replace(field, values=(bytes(feature.values[0]).decode("utf-8"),))  # type: ignore[arg-type]
    except UnicodeDecodeError:
        return None


def _short(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _shaped(values: list[float], shape: Sequence[int | None]) -> Any:
    for size in reversed(shape[1:]):
        step = size or 1
        values = [values[at : at + step] for at in range(0, len(values), step)]  # type: ignore[misc]
    return values if shape else values[0]
