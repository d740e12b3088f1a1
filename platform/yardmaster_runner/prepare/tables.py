"""What the columns of tables hold: found in a first pass over all rows, so that every worker writes the same features
and classes."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Set

from yardmaster_runner.data.description import Feature
from yardmaster_runner.prepare.cells import FEATURES, column_kind
from yardmaster_runner.prepare.rows import Header
from yardmaster_runner.prepare.schema import Columns
from yardmaster_runner.prepare.trouble import PrepareError

MOST_CLASSES = 100_000


class Table:
    """The state of the first pass. `seen`: what was seen of each column of a CSV (`cells.FEATURES`)."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.seen: Dict[str, str] = {}
        self.columns = Columns()
        self.names: Set[str] = set()

    def see_columns(self, columns: Dict[str, List[str]]) -> None:
        """Cells of a CSV, by column."""
        for name, cells in columns.items():
            self.seen[name] = column_kind(cells, self.seen.get(name, "int64"))
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

    @property
    def kinds(self) -> Dict[str, str]:
        """The kinds of the features of a CSV, the label as it is read."""
        return {name: FEATURES[seen] for name, seen in self.seen.items()}

    def notes(self) -> List[str]:
        """What the log says of columns that are not what they look like."""
        message = "%s is kept as text: a float of 32 bits does not hold its whole numbers, of which some are empty or "
        message += "have more than 64 bits. Fill the empty cells to have whole numbers."
        return [message % name for name, seen in self.seen.items() if seen == "inexact"]

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


def delimiters(headers: Mapping[str, Header]) -> List[str]:
    """For the log, what divides the cells of tables that are called CSV and have no commas."""
    found: Dict[str, List[str]] = {}
    for path, one in headers.items():
        if one.delimiter != "," and ".csv" in path.lower():
            found.setdefault("semicolons" if one.delimiter == ";" else "tabs", []).append(path)
    more = {name: " and %d more tables" % (len(paths) - 1) * (len(paths) > 1) for name, paths in found.items()}
    return ["cells are divided by %s in %s%s" % (name, paths[0], more[name]) for name, paths in found.items()]


def check_same(headers: Mapping[str, Header], first: str, other: str) -> None:
    """Raise `PrepareError` where two tables differ in their columns; the order may differ."""
    for has, lacks in ((first, other), (other, first)):
        more = set(headers[has].names) - set(headers[lacks].names)
        if more:
            message = "%s has the column %r, which %s lacks: give all tables the same columns, or prepare them apart"
            raise PrepareError(message % (has, min(more), lacks))
