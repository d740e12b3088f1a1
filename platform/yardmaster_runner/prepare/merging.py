"""The results of all workers as one description. Pure: the order of the results does not matter."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Sequence

from yardmaster_runner.data.description import (
    FILE_FORMATS,
    JSON_LINES,
    Description,
    Feature,
    Histogram,
    Shard,
    from_text,
    to_text,
)
from yardmaster_runner.prepare.folder import SPLITS
from yardmaster_runner.prepare.histogram import Histogram as Counted
from yardmaster_runner.prepare.numbers import Numbers
from yardmaster_runner.prepare.schema import joined
from yardmaster_runner.prepare.trouble import PrepareError

PREDICTIONS = "predictions"
KNOWN = (*SPLITS, PREDICTIONS)


def merged(parts: Sequence[Mapping[str, Any]]) -> Description:
    """Raises `PrepareError` where the results are not those of one preparation, or differ in a feature's kind."""
    parts = sorted(parts, key=lambda one: one["worker"])
    first = parts[0]
    if any(one["plan"] != first["plan"] for one in parts):
        raise PrepareError("the workers saw different inputs or options: start all of them again")
    if [one["worker"] for one in parts] != list(range(first["workers"])):
        raise PrepareError("results of %d workers, expected %d" % (len(parts), first["workers"]))
    try:
        found = [_features(one["features"]) for one in parts if one["splits"]]
        features = joined(found, is_text=first.get("file_format") == JSON_LINES)
    except ValueError as error:
        raise PrepareError(str(error)) from None
    _check_bad(parts)
    splits: Dict[str, List[Shard]] = {}
    counts: Dict[str, Dict[str, int]] = {}
    numbers: Dict[str, Numbers] = {}
    histograms: Dict[str, Counted] = {}
    for part in parts:
        for split, shards in part["splits"].items():
            splits.setdefault(split, []).extend(Shard(**one) for one in shards)
        for split, classes in part["counts"].items():
            for name, count in classes.items():
                of_split = counts.setdefault(split, {})
                of_split[name] = of_split.get(name, 0) + count
        for name, members in part.get("histograms", {}).items():
            histograms[name] = histograms.get(name, Counted()).with_other(Counted.from_members(members))
        for name, members in part["statistics"].items():
            numbers[name] = numbers.get(name, Numbers()).with_other(Numbers.from_members(members))
    return Description(
        features=features,
        splits={name: tuple(sorted(splits[name], key=lambda s: s.path)) for name in KNOWN if name in splits},
        compression=first["compression"],
        label=first["label"],
        classes=tuple(first["classes"]),
        counts={name: dict(sorted(counts[name].items())) for name in SPLITS if name in counts},
        statistics={name: one.facts() for name, one in numbers.items() if one.count},
        histograms={name: Histogram(**one.facts()) for name, one in histograms.items() if one.bins},
        file_format=first.get("file_format", FILE_FORMATS[0]),
    )


def _check_bad(parts: Sequence[Mapping[str, Any]]) -> None:
    """A bound on bad records holds for all workers together, of which each knows its own."""
    most = parts[0].get("most_bad")
    if most is not None and (count := sum(one["bad_count"] for one in parts)) > most:
        example = next(one["bad"][0] for one in parts if one["bad"])
        message = "%d bad records in all, more than %d; the first of one worker: %s"
        raise PrepareError(message % (count, most, example))


def merged_texts(texts: Sequence[str]) -> Dict[str, Any]:
    """The description as text with what was counted, or `error`: what is wrong with the results, which may be
    anything."""
    try:
        parts = [json.loads(text) for text in texts]
        description = merged(parts)
        records = sum(description.records(split) for split in description.splits)
        if not records:
            raise PrepareError("no record was written")
        bad = [str(one) for part in parts for one in part["bad"]]
        text = to_text(description)
        from_text(text)
        skipped = sum(int(part["bad_count"]) for part in parts)
        empty = empty_splits(parts, description)
        return {"text": text, "records": records, "skipped": skipped, "bad": bad[:100], "empty": empty}
    except (PrepareError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        return {"error": "the results of the tasks cannot be merged: %s" % error}


def empty_splits(parts: Sequence[Mapping[str, Any]], description: Description) -> List[str]:
    """The splits that were asked for and have no record."""
    asked = [str(name) for name in parts[0].get("asked", [])]
    return [name for name in asked if name in SPLITS and name not in description.splits]


def _features(members: Mapping[str, Mapping[str, Any]]) -> Dict[str, Feature]:
    return {
        name: Feature(one["kind"], None if one["shape"] is None else tuple(one["shape"]), one["encoding"])
        for name, one in members.items()
    }
