"""The command behind `make bench-cluster`. Exit 1 where there is no cluster."""

from __future__ import annotations

import sys

from tests.bench import running
from tests.bench.cluster import drain, kills, placement, reach, submit, volumes, watched, writes
from tests.bench.lines import Measurement
from tests.cluster.reach import NEEDED, find_cluster

MEASUREMENTS: dict[str, Measurement] = {
    "writes": writes.measure,
    "submit": submit.measure,
    "drain": drain.measure,
    "reach": reach.measure,
    "kills": kills.measure,
    "placement": placement.measure,
    "watched": watched.measure,
    "volumes": volumes.measure,
}


def main(names: list[str]) -> int:
    if find_cluster() is None:
        print(NEEDED, file=sys.stderr)
        return 1
    running.run(MEASUREMENTS, names)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
