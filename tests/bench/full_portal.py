"""Every page, list and detail of a large portal on PostgreSQL, as an administrator, a manager and a member see it: how
many statements each needs, and how evenly all are answered, for eight clients at once.

Addresses come from the routes (`tests.integration.queries.walk`), rows from `full_rows`.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench.counted_statements import STATEMENTS
from tests.bench.job_list import cluster
from tests.bench.lines import Line, median
from tests.real.portal import LIGHT, real_portal
from tests.real.postgres import programs

CLIENTS, ROUNDS, LOOKS = 8, 6, 3
SEED = 20261127
GROUPS = {"list pages": 8, "API lists": 8, "other pages": 12, "API details": 12, "admin pages": 12}
FILES = "files"
FILL = "import django\ndjango.setup()\nfrom tests.bench.full_rows import main\nmain()\n"
TOLD = {
    "DJANGO_SETTINGS_MODULE": "tests.bench.counted_settings",
    "YARDMASTER_RATE_USER": "1000000",
    "YARDMASTER_RATE_EXPENSIVE": "1000000",
}
"""What is measured is how fast the portal answers, not how much one person may ask."""
_SHOWN = ("text/html", "application/json", "application/problem+json")


@dataclass(frozen=True)
class Seen:
    """An address as one person found it: its group, statements, and seconds of an answer to this client alone."""

    who: str
    path: str
    route: str
    group: str
    statements: int
    alone: float


def measure() -> Iterable[Line]:
    bin_folder = programs()
    if bin_folder is None:
        raise RuntimeError("no PostgreSQL programs on this machine")
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as home, cluster(bin_folder) as database:
        told = TOLD | {"YARDMASTER_DATABASE_URL": database.url("bench")}
        with real_portal(Path(home), LIGHT, told) as portal:
            world = json.loads(portal.script(FILL).splitlines()[-1])
            with get_context("spawn").Pool(1) as apart:  # the clients' work is not the portal's
                seen, times = apart.apply(ask_all, (portal.url, world["cookies"], world["asked"]))
    yield from _statements(seen)
    yield from _evenness(seen, times)


def _statements(seen: list[Seen]) -> Iterator[Line]:
    """Per group the address with the most, and each that needs too many."""
    for group, most in GROUPS.items():
        found = sorted((one for one in seen if one.group == group), key=lambda one: one.statements)
        worst = found[-1]
        note = f"{worst.route} as {worst.who}; {len({one.route for one in found})} routes"
        yield Line(f"full portal, {group}: most statements", worst.statements, "", at_most=most, note=note)
        for route in sorted({one.route for one in found[:-1] if one.statements > most} - {worst.route}):
            count = max(one.statements for one in found if one.route == route)
            yield Line(f"... {route}", count, "", at_most=most)


def _evenness(seen: list[Seen], times: list[tuple[int, float]]) -> Iterator[Line]:
    """Half of the answers, and 99 of 100, of each group and of all; then what is slow when it is asked for alone."""
    groups = defaultdict(list)
    for number, took in times:
        groups[seen[number].group].append(took)
    load = f"load {os.getloadavg()[0]:.1f}"
    for name, found in {**groups, "all of them": [took for _, took in times]}.items():
        half, most = median(found), sorted(found)[int(len(found) * 0.99)]
        note = f"{len(found)} requests, p50 {half * 1e3:.0f} ms, p99 {most * 1e3:.0f} ms, {load}"
        yield Line(f"full portal, {CLIENTS} clients, {name}: p99 to p50", most / half, "", at_most=4.0, note=note)
    usual = median(one.alone for one in seen)
    yield Line("full portal, one client: half of all addresses within", usual * 1e3, "ms", note=load)
    slow: dict[str, Seen] = {}
    for one in sorted(seen, key=lambda one: one.alone):
        slow[one.route] = one
    for one in sorted(slow.values(), key=lambda one: -one.alone)[:10]:
        note = f"as {one.who}, {one.group}, {one.statements} statements"
        yield Line(f"... {one.path[:56]}", one.alone / usual, "times", note=note)


def ask_all(url: str, cookies: dict[str, str], asked: list[list[str]]) -> tuple[list[Seen], list[tuple[int, float]]]:
    """What each person found at each address; then how long each answer took with all clients at once, as pairs of a
    place in the first list and seconds."""
    seen = [one for who in cookies for one in _looked(url, who, cookies[who], asked)]
    shown = [number for number, one in enumerate(seen) if one.group != FILES]
    times: list[tuple[int, float]] = []
    draw = random.Random(SEED)
    queue = [number for _ in range(ROUNDS) for number in draw.sample(shown, len(shown))]
    troubles: list[str] = []
    threads = [
        threading.Thread(target=_client, args=(url, cookies, seen, queue, times, troubles)) for _ in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise RuntimeError(troubles[0])
    return [one for one in seen if one.group != FILES], _renumbered(seen, times)


def _renumbered(seen: list[Seen], times: list[tuple[int, float]]) -> list[tuple[int, float]]:
    places = {number: place for place, number in enumerate(n for n, one in enumerate(seen) if one.group != FILES)}
    return [(places[number], took) for number, took in times]


def _looked(url: str, who: str, cookie: str, asked: list[list[str]]) -> Iterator[Seen]:
    """Each address three times, of which the quickest counts; what this person does not get is left out."""
    from tests.integration.queries.walk import Asked

    connection = _connection(url)
    for one in (Asked(*row) for row in asked):
        took, answer, body = min(
            (_answer(connection, one.path, cookie) for _ in range(LOOKS)), key=lambda found: found[0]
        )
        if answer.status >= 500 and answer.status != 503:
            raise RuntimeError(f"{one.path} answered {answer.status}")
        if answer.status == 200:
            kind = answer.headers.get("Content-Type", "").partition(";")[0]
            group = one.group(kind, body) if kind in _SHOWN else FILES
            yield Seen(who, one.path, one.route, group, int(answer.headers.get(STATEMENTS, 0)), took)


def _client(
    url: str, cookies: dict[str, str], seen: list[Seen], queue: list[int], times: list[tuple[int, float]],
    troubles: list[str],
) -> None:  # fmt: skip
    connection = _connection(url)
    while not troubles:
        try:
            number = queue.pop()
        except IndexError:
            return
        one = seen[number]
        took, answer, _ = _answer(connection, one.path, cookies[one.who])
        if answer.status != 200:
            troubles.append(f"{one.path} answered {answer.status} as {one.who}")
        times.append((number, took))


def _connection(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)


def _answer(connection: http.client.HTTPConnection, path: str, cookie: str) -> tuple[float, Any, bytes]:
    begun = time.perf_counter()
    connection.request("GET", path, headers={"Cookie": cookie, "Accept": "text/html, application/json;q=0.9"})
    answer = connection.getresponse()
    body = answer.read()
    return time.perf_counter() - begun, answer, body
