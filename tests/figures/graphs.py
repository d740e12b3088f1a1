"""Strongly connected components of a directed graph, and other questions to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import combinations

Graph = Mapping[str, AbstractSet[str]]


def components(graph: Graph) -> list[frozenset[str]]:
    """The strongly connected components, the largest first, then by name. A node that is only pointed at counts."""
    nodes = set(graph) | {to for targets in graph.values() for to in targets}
    reached = {node: _reached(graph, node) for node in nodes}
    found = {frozenset({node} | {other for other in reached[node] if node in reached[other]}) for node in nodes}
    return sorted(found, key=lambda one: (-len(one), sorted(one)))


def tied_pairs(graph: Graph) -> list[tuple[str, str]]:
    """Pairs of nodes that point at each other directly, by name."""
    pairs = combinations(sorted(graph), 2)
    return [(one, other) for one, other in pairs if other in graph[one] and one in graph[other]]


def graph_of(edges: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The graph with these edges; one from a node to itself is left out."""
    graph: dict[str, set[str]] = {}
    for source, target in edges:
        graph.setdefault(source, set())
        graph.setdefault(target, set())
        if source != target:
            graph[source].add(target)
    return graph


def _reached(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph.get(waiting.pop(), ()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen
