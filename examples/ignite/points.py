"""A table of points `y = 3 x - 2`, and how rows come into it. Any other client of Ignite could write them.

In the folder of the project, with the port that `make ignite` prints (started in another terminal):

IGNITE_DATASET_PORT=10800 PYTHONPATH=platform .venv-tasks/bin/python examples/ignite/points.py --rows 2000
"""

from __future__ import annotations

import argparse
import os

from yardmaster_runner.data.ignite_reader import keyed
from yardmaster_runner.data.ignite_reader.access import Access, addresses_of, tls_context
from yardmaster_runner.data.ignite_reader.cluster import Cluster
from yardmaster_runner.data.ignite_reader.connection import Connection

TABLE = "POINTS"
CACHE = f"SQL_PUBLIC_{TABLE}"
SLOPE, OFFSET = 3.0, -2.0


def connected() -> Connection:
    """To the Ignite of the variables, which a data connection sets in a job."""
    said = {name: os.environ.get(f"IGNITE_DATASET_{name}") for name in (
        "HOST", "PORT", "USERNAME", "PASSWORD", "CERTFILE", "KEYFILE", "CERT_PASSWORD", "CAFILE",
    )}  # fmt: skip
    addresses = addresses_of(said["HOST"] or "localhost", int(said["PORT"] or 10800))
    tls = tls_context(said["CERTFILE"], said["KEYFILE"], said["CERT_PASSWORD"], said["CAFILE"])
    return Cluster(Access(addresses, said["USERNAME"], said["PASSWORD"], tls)).connect()


def make_table(connection: Connection, table: str = TABLE) -> int:
    """Make the table unless it is there, and say how many rows it has."""
    keyed.statement(connection, f"CREATE TABLE IF NOT EXISTS {table} (ID LONG PRIMARY KEY, X DOUBLE, Y DOUBLE)")
    return int(keyed.statement(connection, f"SELECT COUNT(*) FROM {table}")[0][0])


def drop_table(connection: Connection, table: str) -> None:
    keyed.statement(connection, f"DROP TABLE IF EXISTS {table}")


def insert(connection: Connection, first: int, count: int, table: str = TABLE) -> None:
    """Rows with the ids from `first` on."""
    xs = [(one * 37 % 200) / 100 - 1 for one in range(first, first + count)]
    rows = ", ".join(f"({first + at}, {x}, {SLOPE * x + OFFSET})" for at, x in enumerate(xs))
    keyed.statement(connection, f"INSERT INTO {table} (ID, X, Y) VALUES {rows}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    rows, connection = parser.parse_args().rows, connected()
    there = make_table(connection)
    for first in range(there, rows, 500):
        insert(connection, first, min(500, rows - first))
    print("rows", max(there, rows))


if __name__ == "__main__":
    main()
