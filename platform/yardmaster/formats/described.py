"""What a page shows of a prepared dataset: `dataset.json` in a few bounded tables. Runs in a sandboxed process, since
the text comes from users. Not here: the form of the description (`yardmaster_runner.data.description`).
"""

from __future__ import annotations

import math
from typing import Any

from yardmaster_runner.data.description import JSON_LINES, BadDescription, Description, OtherFormat, from_text

FEATURES_SHOWN = 100
CLASSES_SHOWN = 40
NUMBERS_SHOWN = 30
SPLITS_SHOWN = 20
RAW_SHOWN = 200
_DIMENSIONS = 32
_LONGEST = 200


def summary(text: str, path: str = "") -> dict[str, Any]:
    """The tables, or `error`: what is wrong with the text. Every list and text in it is bounded. Empty: the file is not
    of preparation. `records_of`: the records of the shard at `path`, None where there is no such shard."""
    try:
        found = from_text(text)
        return _tables(found) | {"records_of": _records_of(found, path), "raw": _raw(found)}
    except OtherFormat:
        return {}
    except (BadDescription, ValueError, TypeError, AttributeError, OverflowError) as error:
        return {"error": str(error)[:_LONGEST]}


def _tables(found: Description) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for of_split in found.counts.values():
        for name, count in of_split.items():
            counts[name] = counts.get(name, 0) + count
    order = {name: at for at, name in enumerate(found.classes)}
    names = sorted(counts, key=lambda one: (order.get(one, len(order)), one))
    if len(names) > CLASSES_SHOWN:
        names = sorted(names, key=lambda one: -counts[one])[:CLASSES_SHOWN]
    return {
        "compression": found.compression,
        "is_text": found.file_format == JSON_LINES,
        "label": found.label[:_LONGEST],
        "splits": [_split(found, name) for name in list(found.splits)[:SPLITS_SHOWN]],
        "features": [_feature(found, name) for name in sorted(found.features)[:FEATURES_SHOWN]],
        "features_total": len(found.features),
        "classes": {name[:_LONGEST]: counts[name] for name in names},
        "classes_total": len(counts),
        "labelled": sum(counts.values()),
        "smallest": min(counts.values(), default=0),
        "largest": max(counts.values(), default=0),
        "numbers": [_numbers(found, name) for name in sorted(found.statistics)[:NUMBERS_SHOWN]],
        "first": next((shard.path for shards in found.splits.values() for shard in shards), ""),
    }


def _records_of(found: Description, path: str) -> int | None:
    known = (one.records for shards in found.splits.values() for one in shards if one.path == path)
    return next((records for records in known if records < 1 << 53), None)


def _raw(found: Description) -> dict[str, tuple[str, list[int]]]:
    """Type and shape of the features that are arrays kept as bytes."""
    names = [name for name in sorted(found.features) if len(name) <= _LONGEST][:RAW_SHOWN]
    known = {name: found.features[name] for name in names}
    return {
        name: (one.encoding.removeprefix("raw:"), list(one.shape))
        for name, one in known.items()
        if one.encoding.startswith("raw:")
        and one.shape is not None
        and len(one.shape) <= _DIMENSIONS
        and all(length < 1 << 32 for length in one.shape)
    }


def _split(found: Description, name: str) -> dict[str, Any]:
    shards = found.splits[name]
    size = sum(shard.size for shard in shards)
    return {"name": name[:_LONGEST], "records": found.records(name), "shards": len(shards), "size": size}


def _feature(found: Description, name: str) -> dict[str, Any]:
    one = found.features[name]
    shape = "varies" if one.shape is None else "×".join(map(str, one.shape[:8])) or "one"
    return {"name": name[:_LONGEST], "kind": one.kind, "shape": shape, "encoding": one.encoding}


def _numbers(found: Description, name: str) -> dict[str, Any]:
    facts, bars = found.statistics[name], found.histograms.get(name)
    shown = {key: facts[key] for key in ("min", "max", "mean", "std") if math.isfinite(facts.get(key, math.nan))}
    most = max(bars.counts, default=0) if bars else 0
    heights = [round(100 * max(0, one) / most, 1) for one in bars.counts] if bars and most > 0 else []
    return {"name": name[:_LONGEST], **shown, "heights": heights}
