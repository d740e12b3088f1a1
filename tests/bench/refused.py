"""What a thousand refused requests a second cost those that are let in: clients with good tokens, timed in turn with
and without the stream, on PostgreSQL with ten thousand tokens.

The stream comes from a process of its own over kept connections, from 32 addresses, below the allowance of each: every
request is read and refused with 401, which costs more than 429. A fifth each of them brings no token, a malformed, an
unknown, an expired and a revoked one. The clients measure in another process.
"""

from __future__ import annotations

import http.client
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path

from tests.bench.job_list import cluster
from tests.bench.lines import Line, interleaved, median
from tests.bench.refused_stream import Stream, stream
from tests.real.portal import LIGHT, RealPortal, real_portal
from tests.real.postgres import programs

TOKENS, RATE, SOURCES = 10_000, 1_000, 32
ASKED, ROUNDS, WARMING = 300, 6, 200
ADDRESSES = ("/api/v1/me/", "/api/v1/jobs/", "/api/v1/namespaces/", "/api/v1/tokens/")
SEED = 20261127

FILL = """
import json, sys
import django
django.setup()
from datetime import timedelta
from django.db import connection
from django.utils import timezone
from knox.crypto import create_token_string, hash_token
from apps.accounts.models import PersonalToken, User
now, secrets = timezone.now(), {"good": [], "expired": [], "revoked": []}
users = User.objects.bulk_create([User(username=f"user{n}", email=f"user{n}@example.org") for n in range(200)])
def row(n, kind):
    secret = "ym_" + create_token_string()
    secrets[kind].append(secret)
    expiry = now - timedelta(days=1) if kind == "expired" else now + timedelta(days=90)
    return PersonalToken(user=users[n % 200], name=f"t{n}", digest=hash_token(secret), token_key=secret[:15],
                         expiry=expiry, last_used_at=now)
count = int(sys.argv[1])
PersonalToken.objects.bulk_create([row(n, "expired" if n % 10 == 0 else "good") for n in range(count)], 1000)
for n in range(200):
    row(n, "revoked")
with connection.cursor() as cursor:
    cursor.execute("VACUUM ANALYZE")
print(json.dumps({kind: found[:200] for kind, found in secrets.items()}))
"""


def measure() -> Iterable[Line]:
    bin_folder = programs()
    if bin_folder is None:
        raise RuntimeError("no PostgreSQL programs on this machine")
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as home,
        cluster(bin_folder) as database,
        real_portal(Path(home), LIGHT, {"YARDMASTER_DATABASE_URL": database.url("bench")}) as portal,
    ):
        secrets = json.loads(portal.script(FILL, str(TOKENS)).splitlines()[-1])
        yield from _compared(portal, secrets)


def _compared(portal: RealPortal, secrets: dict[str, list[str]]) -> Iterable[Line]:
    context = get_context("spawn")
    with stream(portal.url, secrets, RATE, SOURCES) as refused, context.Pool(1) as apart:
        apart.apply(ask, (portal.url, secrets["good"], WARMING))
        used: list[float] = []

        def alone() -> list[float]:
            return list(apart.apply(ask, (portal.url, secrets["good"], ASKED)))

        def beside() -> list[float]:
            with refused.on(portal, used):
                return alone()

        without, among = interleaved(alone, beside, ROUNDS)
    yield from _lines(refused, used, without, among)


def _lines(refused: Stream, used: list[float], without: list[list[float]], among: list[list[float]]) -> Iterable[Line]:
    """Of every pair of rounds the ratio; the middle one of them counts, as other work on the machine comes and goes."""
    half = [median(two) / median(one) for one, two in zip(without, among, strict=True)]
    slow = [_late(two) / _late(one) for one, two in zip(without, among, strict=True)]
    reached = median(one.rate for one in refused.rounds)
    statuses: Counter[str] = sum((one.statuses for one in refused.rounds), Counter())
    note = " ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    yield Line(f"accepted requests, {TOKENS} tokens: half within", median(map(median, without)) * 1e3, "ms")
    yield Line("refused requests a second beside them", reached, "", at_least=0.95 * RATE, note=note)
    yield Line("... slow half of the accepted ones, ratio", median(half), "", at_most=1.2, note=_rounds(half))
    yield Line("... slow 99 of 100 of them, ratio", median(slow), "", at_most=1.2, note=_rounds(slow))
    yield Line("... a refused one takes of the web process", median(used) * 1e3, "ms")


def _rounds(ratios: list[float]) -> str:
    return "rounds " + " ".join(f"{one:.2f}" for one in ratios)


def _late(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def ask(url: str, tokens: list[str], number: int) -> list[float]:
    """How long each of so many requests took, in seconds, one after the other over one connection."""
    draw = random.Random(SEED)
    host = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    times = []
    for asked in range(number):
        head = {"Authorization": f"Bearer {tokens[asked % 50]}"}
        begun = time.perf_counter()
        host.request("GET", draw.choice(ADDRESSES), headers=head)
        answer = host.getresponse()
        answer.read()
        times.append(time.perf_counter() - begun)
        if answer.status != 200:
            raise RuntimeError(f"a good token was answered {answer.status}")
    host.close()
    return times
