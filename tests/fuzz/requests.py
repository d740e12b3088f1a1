"""One request of the fuzz: what schemathesis drew, mixed with what reaches further. Each is drawn from a number, so
that Hypothesis finds it again. Not here: what is checked of the answer."""

from __future__ import annotations

import json
import random
from typing import Any

from schemathesis import Case

from tests.fuzz.bodies import QUERIES
from tests.fuzz.nasty import BODIES, spoiled
from tests.fuzz.nasty import QUERIES as NASTY_QUERIES
from tests.fuzz.world import WHO, FuzzWorld

OWN_IDS = 0.9
"""Share of requests with the team's own ids in the address. The others have what schemathesis drew."""


def prepared(case: Case, world: FuzzWorld, luck: int) -> dict[str, Any]:
    """Change the case; returns what `case.call` takes besides."""
    rng = random.Random(luck)
    who = rng.choice(WHO)
    operation = case.operation.definition.raw.get("operationId", "")
    if rng.random() < OWN_IDS and case.path_parameters:
        case.path_parameters = world.path_parameters(case.path, operation)
    told: dict[str, Any] = {"headers": world.headers(who, case.operation.path)}
    if case.media_type == "application/json":
        _body(case, world.bodies.get(operation, {}), rng, told)
    _query(case, QUERIES.get(operation, {}), rng)
    return told


def _body(case: Case, valid: dict[str, Any], rng: random.Random, told: dict[str, Any]) -> None:
    """A third valid, a third with one value spoiled or drawn by schemathesis, the others drawn."""
    choice = rng.random()
    drawn = case.body
    if choice < 0.03:
        told["data"] = rng.choice(BODIES)
    elif choice < 0.3 and valid:
        case.body = valid
    elif choice < 0.6:
        told["data"] = json.dumps(spoiled(valid or drawn, rng)).encode()  # schemathesis would send no NaN
    elif choice < 0.75 and valid and isinstance(drawn, dict):
        some = [key for key in drawn if rng.random() < 0.4]
        case.body = valid | {key: drawn[key] for key in some}
    if "data" in told:
        told["headers"] = told["headers"] | {"Content-Type": "application/json"}


def _query(case: Case, valid: dict[str, str], rng: random.Random) -> None:
    """Half of all have what the operation needs; some have one value spoiled, as it stands in the address."""
    choice = rng.random()
    names = [one.name for one in case.operation.query]
    if choice < 0.4:
        case.query = dict(valid)
    elif choice < 0.6 and names:
        case.query = valid | {rng.choice(names): rng.choice(NASTY_QUERIES)}
    elif choice < 0.7:
        case.query = {**case.query, **valid}
