"""How fast scripts read Apache Ignite: against pyignite, against a socket that carries the same bytes, over a network
against on the same machine, and several connections against one. All in one run and in turn, so that a machine that
slows down favours none.

pyignite is no part of Yardmaster: `PYIGNITE_PYTHON` names a Python that has it, and without one its lines are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from portal.env import task_python
from tests.bench.lines import Line, median
from tests.real.ignite import Ignite, ignite, lacks_ignite
from tests.real.machines import lacks_machines

ROOT = Path(__file__).resolve().parents[2]
LONG_ROWS, SHORT_ROWS, ROUNDS = 1000, 500_000, 4
"""Rows of 1 MB, rows of eight numbers, and how often each is measured."""
CORES_FOR_FOUR = 4
GATEWAY = "10.78.1.1"
_SIZES = {name: f"IGNITE_BENCH_{name}" for name in ("LONG_ROWS", "SHORT_ROWS", "ROUNDS")}
"""Variables that make it smaller, to see that it works."""


def measure() -> Iterable[Line]:
    missing = lacks_ignite()
    if missing:
        print(f"ignite: left out, {missing}", file=sys.stderr)
        return
    os.environ |= {"IGNITE_HEAP": "4096", "IGNITE_DATA": "3072", "IGNITE_JAVA": "-XX:+UseParallelGC"}
    os.environ["IGNITE_ADDRESS"] = "0.0.0.0"  # so that a reader in a network namespace reaches it
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder,
        ignite(Path(folder) / "node") as server,
        _namespace() as space,
    ):
        yield from lines(_measured(server, space))


def lines(found: Mapping[str, Sequence[float]]) -> Iterable[Line]:
    """What was measured, by its name (`ignite_child`): MB or rows a second of each round."""
    rate = {name: median(values) for name, values in found.items()}
    cores = os.cpu_count() or 1
    if "pyignite long" in rate:
        yield _ratio("rows of 1 MB, 20 a page: the reader, of pyignite", rate, "long", "pyignite long", 2.0)
    yield _ratio("... of a socket with the same bytes", rate, "long", "socket", 0.6)
    yield _ratio(
        "... of a client that only takes the same pages, which is what Ignite gives", rate, "long", "taken", 0.6
    )
    if "remote" in rate:
        yield _ratio("... from another machine, of on the same one", rate, "remote", "long", 0.94)
    note = f"{cores} cores" + ("" if cores >= CORES_FOR_FOUR else ": too few for this goal")
    goal = 1.8 if cores >= CORES_FOR_FOUR else 0.0
    yield _ratio("... four connections, of one", rate, "four", "one", goal, note)
    if "pyignite short" in rate:
        yield _ratio("rows of eight numbers: the reader, of pyignite", rate, "short", "pyignite short", 5.0)


def _ratio(name: str, rate: Mapping[str, float], one: str, other: str, goal: float, note: str = "") -> Line:
    said = f"{rate[one]:,.0f} against {rate[other]:,.0f}" + (f"; {note}" if note else "")
    return Line(name, rate[one] / rate[other], "", at_least=goal, note=said)


@contextmanager
def _namespace() -> Iterator[str]:
    """A network namespace of this machine, which is at `GATEWAY` there; nothing where none can be made."""
    if lacking := lacks_machines():
        print(f"ignite: without a reader on another machine, {lacking}", file=sys.stderr)
        yield ""
        return
    space = f"ymb{os.getpid()}"
    try:
        for words in (
            f"netns add {space}", f"link add v{space} type veth peer name eth0 netns {space}",
            f"addr add {GATEWAY}/24 dev v{space}", f"link set v{space} up",
            f"-n {space} addr add {GATEWAY[:-1]}2/24 dev eth0", f"-n {space} link set eth0 up",
        ):  # fmt: skip
            subprocess.run(["ip", *words.split()], check=True)
        yield space
    finally:
        subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)  # its link with it


def _measured(server: Ignite, space: str) -> dict[str, list[float]]:
    long, short, rounds = (
        int(os.environ.get(variable, default))
        for variable, default in zip(_SIZES.values(), (LONG_ROWS, SHORT_ROWS, ROUNDS), strict=True)
    )
    server.fill(f"blobs one-blobs 0 {long} {1 << 20}", f"numbers one-numbers 0 {short}")
    python = os.environ.get("PYIGNITE_PYTHON", "")
    if not python:
        print("ignite: without pyignite, as PYIGNITE_PYTHON names no Python that has it", file=sys.stderr)
    done = subprocess.run(
        [task_python(), "-m", "tests.bench.ignite_child", str(server.ports[0]), str(long), str(rounds), python,
         space, GATEWAY],
        check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}"},
    )  # fmt: skip
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found
