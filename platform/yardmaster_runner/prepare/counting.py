"""What is counted of the records of one worker while they are written: classes by split, and the numbers of each
feature."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, Mapping, Sequence

from yardmaster_runner.data.description import Feature
from yardmaster_runner.data.example_bytes import Values
from yardmaster_runner.prepare.histogram import Histogram
from yardmaster_runner.prepare.numbers import Numbers

MOST_CLASSES = 100_000


class Counted:
    """`label` is the name of the label, or empty; `classes` the names of its values."""

    def __init__(self, label: str, classes: Sequence[str]) -> None:
        self.label, self.classes = label, classes
        self.numbers: Dict[str, Numbers] = {}
        self.histograms: Dict[str, Histogram] = {}
        self.counts: Dict[str, Dict[str, int]] = {}

    def add(self, split: str, values: Mapping[str, Values]) -> None:
        """One record."""
        for name, (kind, found) in values.items():
            if kind != "bytes":
                numbers = self.numbers.setdefault(name, Numbers())
                for one in found:
                    numbers.add(one)  # type: ignore[arg-type]
                if len(found) == 1 and math.isfinite(found[0]):  # type: ignore[arg-type]
                    self.histograms.setdefault(name, Histogram()).add(found[0])  # type: ignore[arg-type]
        label = values.get(self.label) if self.label else None
        if label and len(label[1]) == 1 and label[0] == "int64":
            self.add_labels(split, label[1])

    def add_columns(self, features: Mapping[str, Feature], columns: Mapping[str, Sequence[Any]]) -> None:
        """The numbers of records that have one value of each feature; their labels come by split (`add_labels`)."""
        import numpy

        for name, column in columns.items():
            if features[name].kind != "bytes":
                numbers = numpy.asarray(column, numpy.float64)
                numbers = numbers[numpy.isfinite(numbers)]
                self.numbers[name] = self.numbers.get(name, Numbers()).with_all(numbers)
                self.histograms.setdefault(name, Histogram()).add_all(numbers)

    def add_labels(self, split: str, labels: Sequence[Any]) -> None:
        """The labels of some records of a split."""
        counts = self.counts.setdefault(split, {})
        for label, times in Counter(labels).items():
            number = int(label)
            name = self.classes[number] if 0 <= number < len(self.classes) else str(number)
            if name in counts or len(counts) < MOST_CLASSES:
                counts[name] = counts.get(name, 0) + times
