"""Figures that are read from the source: modules, imports between apps, tails of lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil

from tests.figures.graphs import components, graph_of, tied_pairs
from tests.figures.sources import Module, source_roots, targets
from tests.figures.table import Figure, Section

SHORT = 40
DOORS = ("services", "selectors")


def module_section(found: Sequence[Module]) -> Section:
    counted = [one for one in found if not one.is_package and not one.only_names_app]
    short = [one for one in counted if one.written_lines < SHORT]
    per_root = Counter(one.root for one in counted)
    figures = [Figure(f"modules in {root}", per_root[root]) for root in source_roots()]
    names = tuple(f"{one.written_lines:>3} {one.name}" for one in sorted(short, key=lambda one: one.written_lines))
    figures.append(Figure(f"modules under {SHORT} lines", len(short), f"≤ {SHORT}", names))
    lonely = imported_once(found, counted)
    figures += [
        Figure(f"modules with one importer in {app}", len(names), details=tuple(names))
        for app, names in sorted(lonely.items())
    ]
    figures.append(Figure("modules with one importer in all apps", sum(map(len, lonely.values()))))
    rule = "without __init__.py, migrations, and apps.py that only name the app; blank lines do not count"
    return Section("Modules", rule, tuple(figures))


def imported_once(found: Sequence[Module], counted: Sequence[Module]) -> dict[str, list[str]]:
    """By app: its modules that exactly one module of the project imports."""
    known = {one.name for one in found}
    importers = Counter(target for one in found for target in targets(one, known))
    once: dict[str, list[str]] = {}
    for one in counted:
        if one.root == "apps" and importers[one.name] == 1:
            once.setdefault(app_of(one.name), []).append(one.name)
    return once


def app_of(name: str) -> str:
    return ".".join(name.split(".")[:2])


def import_section(found: Sequence[Module]) -> Section:
    between = imports_between_apps(found)
    graph = graph_of((app_of(source), app_of(target)) for source, target in between)
    sizes = [len(one) for one in components(graph)]
    groups = tuple(", ".join(sorted(one)) for one in components(graph) if len(one) > 1)
    pairs = tied_pairs(graph)
    at_doors = sum(target.rpartition(".")[2] in DOORS for _, target in between)
    figures = (
        Figure("largest component of apps", max(sizes, default=0), "1", groups),
        Figure("components of apps", len(sizes)),
        Figure("apps in components of several", sum(size for size in sizes if size > 1), "0"),
        Figure("pairs of apps that import each other", len(pairs), details=tuple(f"{a} – {b}" for a, b in pairs)),
        Figure("imports between apps", len(between)),
        Figure("of them to services or selectors", at_doors),
    )
    rule = "imports between apps count once per importing and imported module, those within functions included"
    return Section("Imports between apps", rule, figures)


def imports_between_apps(found: Sequence[Module]) -> list[tuple[str, str]]:
    """(importing module, imported module) of two apps."""
    known = {one.name for one in found if one.root == "apps"}
    pairs = ((one.name, target) for one in found if one.root == "apps" for target in sorted(targets(one, known)))
    return [(source, target) for source, target in pairs if app_of(source) != app_of(target)]


def tail_section(found: Sequence[Module]) -> Section:
    functions = [lines for one in found for lines in one.functions]
    files = [one.lines for one in found if one.lines]
    figures = (*_tail("function", functions), *_tail("file", files))
    return Section("Lengths", "lines of functions and of files, without migrations and empty files", figures)


def _tail(what: str, lengths: Sequence[int]) -> tuple[Figure, ...]:
    return (
        Figure(f"{what}s", len(lengths)),
        Figure(f"{what}: p50", percentile(lengths, 50)),
        Figure(f"{what}: p90", percentile(lengths, 90)),
        Figure(f"{what}: longest", max(lengths)),
    )


def percentile(values: Sequence[int], percent: int) -> int:
    """The smallest of the values that at least so many per cent of them do not exceed. Raises `ValueError` for none."""
    if not values:
        raise ValueError("no values have no percentile")
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]
