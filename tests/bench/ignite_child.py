"""What `ignite` measures where tasks run: the arguments are the port, the rows of 1 MB, the rounds, a Python that has
pyignite, or nothing, a network namespace, or nothing, and this machine's address there. Prints
`{name: [a rate for each round]}` as JSON. With `--from` and an address and a port alone: the rate of one reading."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from tests.real.ignite_speed import LONG, pyignite, raw_socket, read, requests_alone

PAGE_ROWS = 20
PYIGNITE_ROWS = 30_000
MEGABYTES = LONG / 1e6


def main(port: int, long_rows: int, rounds: int, python: str, space: str, address: str) -> None:
    total = long_rows * LONG
    actions: dict[str, Callable[[], float]] = {
        "long": lambda: read(port, "one-blobs", 1, PAGE_ROWS) * MEGABYTES,
        "taken": lambda: requests_alone(port, "one-blobs", PAGE_ROWS) / 1e6,
        "socket": lambda: raw_socket(total, min(total, PAGE_ROWS * LONG)) / 1e6,
        "one": lambda: read(port, "one-blobs", 1, None) * MEGABYTES,
        "four": lambda: read(port, "one-blobs", 4, None) * MEGABYTES,
    }
    if space:
        actions["remote"] = lambda: _remote(space, address, port)
    if python:
        actions |= {
            "short": lambda: read(port, "one-numbers", 1, None),
            "pyignite long": lambda: pyignite(python, port, "one-blobs", PAGE_ROWS, 0) * MEGABYTES,
            "pyignite short": lambda: pyignite(python, port, "one-numbers", 1024, PYIGNITE_ROWS),
        }
    found: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds):
        order = list(actions.items())
        for name, action in order if number % 2 == 0 else reversed(order):
            found[name].append(action())
    print(json.dumps(found))


def _remote(space: str, address: str, port: int) -> float:
    """What a reader in the namespace reaches, which is another machine to the network: MB a second."""
    command = ["ip", "netns", "exec", space, sys.executable, "-m", "tests.bench.ignite_child", "--from", address]
    return float(subprocess.run([*command, str(port)], check=True, stdout=subprocess.PIPE, text=True).stdout)


def _once(address: str, port: int) -> None:
    print(read(port, "one-blobs", 1, PAGE_ROWS, address) * MEGABYTES)


if __name__ == "__main__":
    if sys.argv[1] == "--from":
        _once(sys.argv[2], int(sys.argv[3]))
    else:
        main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:7])
