"""Components and ties of the imports between apps, and percentiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.figures.graphs import components, graph_of, tied_pairs
from tests.figures.reading import imported_once, imports_between_apps, percentile
from tests.figures.sources import Module


def module(name: str, text: str = "") -> Module:
    return Module("apps", name, Path(name.replace(".", "/") + ".py"), text)


def test_a_circle_is_one_component_and_what_hangs_on_it_is_not_in_it():
    graph = graph_of([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")])
    assert components(graph) == [frozenset("abc"), frozenset("d"), frozenset("e")]


def test_without_a_circle_every_component_has_size_one():
    assert {len(one) for one in components(graph_of([("a", "b"), ("b", "c"), ("a", "c"), ("d", "d")]))} == {1}


def test_two_that_point_at_each_other_are_tied_and_a_longer_circle_ties_none():
    assert tied_pairs(graph_of([("a", "b"), ("b", "a"), ("b", "c")])) == [("a", "b")]
    assert tied_pairs(graph_of([("a", "b"), ("b", "c"), ("c", "a")])) == []


def test_imports_between_apps_are_found_in_functions_and_by_relative_names():
    one = module("apps.a.x", "from apps.b import y\ndef f():\n    from apps.b.z import name\n    from .w import v\n")
    others = [module("apps.a.w"), module("apps.b.y"), module("apps.b.z", "import apps.a.w\n")]
    assert imports_between_apps([one, *others]) == [
        ("apps.a.x", "apps.b.y"),
        ("apps.a.x", "apps.b.z"),
        ("apps.b.z", "apps.a.w"),
    ]


def test_a_module_that_two_import_is_not_imported_once():
    found = [
        module("apps.a.x", "from apps.a import y, z\n"),
        module("apps.a.y", "from apps.a.z import n\n"),
        module("apps.a.z"),
    ]
    assert imported_once(found, found) == {"apps.a": ["apps.a.y"]}


@pytest.mark.parametrize(
    ("values", "percent", "found"),
    [([7], 50, 7), ([4, 1, 3, 2], 50, 2), (list(range(1, 11)), 90, 9), (list(range(1, 12)), 90, 10), ([1, 2], 100, 2)],
)
def test_a_percentile_is_one_of_the_values(values: list[int], percent: int, found: int):
    assert percentile(values, percent) == found


def test_no_values_have_no_percentile():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
