"""One figure, and an aligned table of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`details` are printed below the table's line where they are asked for."""

    name: str
    value: object
    goal: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """`rule` says in a line how the figures are counted."""

    title: str
    rule: str
    figures: tuple[Figure, ...]


def shown(sections: Iterable[Section], *, verbose: bool) -> str:
    """The sections as text. Within each, all values stand in one column, and all goals in another."""
    lines: list[str] = []
    for section in sections:
        wide = max((len(one.name) for one in section.figures), default=0)
        value = max((len(str(one.value)) for one in section.figures), default=0)
        lines += ["", section.title, f"  ({section.rule})"]
        for one in section.figures:
            goal = f"   goal {one.goal}" if one.goal else ""
            lines.append(f"  {one.name:<{wide}}  {one.value!s:>{value}}{goal}")
            lines += [f"      {line}" for line in one.details if verbose]
    return "\n".join(lines).lstrip("\n")
