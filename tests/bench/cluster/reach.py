"""What policies let through on the cluster's network: connections from pods of a run, and from beside it, to all that
stands around them. Where the network enforces no policy, the first line says so by its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.bench.lines import Line
from tests.cluster.policies import OWN_RUN, WITHIN, Tried, surroundings
from tests.cluster.reach import NEEDED, find_cluster
from yardmaster.errors import Misconfigured

ROUNDS = 20


def measure() -> Iterable[Line]:
    cluster = find_cluster()
    if cluster is None or not cluster.own_address:
        raise Misconfigured("There is no cluster whose pods reach this machine.", remedy=NEEDED)
    with surroundings(cluster) as around:
        inside = around.tries(around.mine, ROUNDS)
        beside = around.tries(around.beside, ROUNDS)
    # Seen from the other run, the first one's listener is a stranger's, and its own has the other name.
    own = "another run of the namespace"
    strangers = _outside(inside, WITHIN) + _outside(beside, WITHIN - {OWN_RUN} | {own})
    friends = [one for name, one in inside.items() if name in WITHIN]
    tried = sum(one.through + one.held for one in strangers)
    ways = f"of {tried} connections, {len(strangers)} ways"
    yield Line(
        "connections let through against policies", sum(one.through for one in strangers), at_most=0.0, note=ways
    )
    allowed = f"of {sum(one.through + one.held for one in friends)}: own run, names, portal"
    yield Line("... held though a policy allows them", sum(one.held for one in friends), at_most=0.0, note=allowed)


def _outside(tried: Mapping[str, Tried], within: frozenset[str]) -> list[Tried]:
    return [one for name, one in tried.items() if name not in within]
