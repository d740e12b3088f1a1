"""Rows without a label are bad records: no class has an empty name, and no label is NaN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Sequence

from yardmaster_runner.prepare.cells import is_empty
from yardmaster_runner.prepare.rows import Block


def labelled(block: Block, label: str, header: Sequence[str]) -> Block:
    """The block with those rows among its bad ones whose label is empty. What lacks the label is left as it is."""
    if block.columns:
        column = block.columns[header.index(label)] if label in header else []
        names = {one for one in set(column) if is_empty(one)}
        empty = [one in names for one in column] if names else []
    else:
        empty = [_is_none(one.get(label, 0)) for one in block.objects]
    if not any(empty):
        return block
    reason = "the label %s is empty" % label
    bad = [(number, reason) for number, is_bad in zip(block.numbers, empty) if is_bad]
    return replace(
        block,
        numbers=_kept(block.numbers, empty),
        columns=[_kept(one, empty) for one in block.columns],
        objects=_kept(block.objects, empty),
        bad=sorted([*block.bad, *bad]),
    )


def _is_none(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and is_empty(value))


def _kept(values: Sequence[Any], empty: Sequence[bool]) -> List[Any]:
    return [one for one, is_bad in zip(values, empty) if not is_bad]
