"""What the columns of tables hold: found in a first pass over all rows, so that every worker writes the same features
and classes; and cells as values by it."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Set

from yardmaster_runner.data.description import Feature
from yardmaster_runner.prepare.schema import LARGEST_FLOAT, Columns
from yardmaster_runner.prepare.trouble import PrepareError

MOST_CLASSES = 100_000
NAN = float("nan")


def cell_kind(text: str, known: str) -> str:
    """The narrowest kind from `known` on that holds the text: int64, float, bytes."""
    if known == "int64":
        try:
            if -(2**63) <= int(text) < 2**63 and "_" not in text:
                return "int64"
        except ValueError:
            pass  # no whole number: perhaps one of the wider kinds below
    if known != "bytes":
        try:
            if "_" not in text and (abs(float(text)) < LARGEST_FLOAT or float(text) in (float("inf"), -float("inf"))):
                return "float"
        except ValueError:
            if text == "":
                return "float"
        if text != text.strip() and not text.strip():
            return "float"
    return "bytes"


def column_kind(cells: Sequence[str], known: str) -> str:
    """What `cell_kind` says of one cell after the other; most columns are looked at as a whole."""
    if known == "bytes" or not cells:
        return known
    try:
        if known == "int64":
            whole = list(map(int, cells))
            if min(whole) >= -(2**63) and max(whole) < 2**63 and "_" not in "".join(cells):
                return "int64"
    except ValueError:
        pass
    try:
        filled = [one for one in cells if one] if "" in cells else cells
        numbers = list(map(float, filled)) or [0.0]
        total = sum(numbers)  # NaN, if one of them is
        are_floats = total == total and max(numbers) < LARGEST_FLOAT and min(numbers) > -LARGEST_FLOAT
        if are_floats and "_" not in "".join(cells):
            return "float"
    except (ValueError, OverflowError):
        pass
    for text in cells:
        known = cell_kind(text, known)
        if known == "bytes":
            break
    return known


class Table:
    """The state of the first pass."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.kinds: Dict[str, str] = {}
        self.columns = Columns()
        self.names: Set[str] = set()

    def see_columns(self, columns: Dict[str, List[str]]) -> None:
        """Cells of a CSV, by column."""
        for name, cells in columns.items():
            self.kinds[name] = column_kind(cells, self.kinds.get(name, "int64"))
        if self.label and self.label not in columns:
            raise ValueError("no column %s, which is the label" % self.label)
        if self.label:
            self._see_labels(set(columns[self.label]))

    def see_members(self, record: Dict[str, Any]) -> None:
        """An object of JSON lines. Raises ValueError."""
        self.columns.see(record)
        if self.label and self.label not in record:
            raise ValueError("no column %s, which is the label" % self.label)
        if self.label:
            self._see_labels({str(record[self.label])})

    def see_objects(self, records: Sequence[Dict[str, Any]]) -> bool:
        """Objects that are like those before, at once. False: nothing was seen, since one is not."""
        if not self.columns.see_same(records):
            return False
        if self.label:
            self._see_labels({str(one[self.label]) for one in records})
        return True

    def _see_labels(self, names: Set[str]) -> None:
        self.names |= names
        if len(self.names) > MOST_CLASSES:
            raise PrepareError("%s has more than %d values: it is no label" % (self.label, MOST_CLASSES))

    def features(self) -> Dict[str, Feature]:
        """The features with the label as whole numbers."""
        found = dict(self.columns.features)
        for name, kind in self.kinds.items():
            found[name] = Feature(kind, (), "utf8" if kind == "bytes" else "")
        if self.classes():
            found[self.label] = Feature("int64", ())
        return found

    def classes(self) -> List[str]:
        """The names of the classes, where the label is text."""
        kind = self.kinds.get(self.label) or (
            self.columns.features[self.label].kind if self.label in self.columns.features else "")  # fmt: skip
        return sorted(self.names) if self.label and kind == "bytes" else []


def check_same(headers: Mapping[str, Sequence[str]], first: str, other: str) -> None:
    """Raise `PrepareError` where two tables differ in their columns; the order may differ."""
    for has, lacks in ((first, other), (other, first)):
        more = set(headers[has]) - set(headers[lacks])
        if more:
            message = "%s has the column %r, which %s lacks: give all tables the same columns, or prepare them apart"
            raise PrepareError(message % (has, min(more), lacks))


def converted(cells: Sequence[str], kind: str) -> List[Any]:
    """The cells of a column as values. An empty cell of a column of numbers is NaN. Raises ValueError."""
    if kind == "int64":
        return list(map(int, cells))
    if kind == "bytes":
        return list(cells)
    try:
        return list(map(float, cells))
    except ValueError:
        return [float(one) if one.strip() else NAN for one in cells]
