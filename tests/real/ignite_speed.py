"""`python -m tests.real.ignite_speed [PYTHON]`: how fast a real Ignite on this machine is read, in rows and megabytes a
second. PYTHON is one that has pyignite, to compare with. Run it with the Python of tasks, on a machine that is quiet.

A figure is the best of three, as other programs take time from each. The raw socket carries the same bytes on loopback
without any work; `requests alone` asks Ignite for the same pages, and looks at nothing in them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.real.ignite import Ignite, ignite
from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.access import Access
from yardmaster_runner.data.ignite_reader.cluster import scan_request
from yardmaster_runner.data.ignite_reader.connection import Connection
from yardmaster_runner.data.ignite_reader.layout import Wishes
from yardmaster_runner.data.ignite_reader.source import CacheSource, Selection

LONG, LONG_ROWS, SHORT_ROWS = 1 << 20, 1000, 500_000
PYIGNITE = """
import sys, time
from pyignite import Client
client = Client()
client.connect("127.0.0.1", int(sys.argv[1]))
begun, rows = time.monotonic(), 0
with client.get_cache(sys.argv[2]).scan(page_size=int(sys.argv[3])) as cursor:
    for _ in cursor:
        rows += 1
        if rows == int(sys.argv[4]):
            break
print(rows / (time.monotonic() - begun))
"""


def best(action: Callable[[], float]) -> float:
    return max(action() for _ in range(3))


def read(port: int, cache: str, connections: int, page_rows: int | None, address: str = "127.0.0.1") -> float:
    """Rows a second, in NumPy."""
    access = Access(((address, port),))
    source = CacheSource(access, cache, Wishes(), Selection(connections=connections, page_rows=page_rows), {})
    begun = time.monotonic()
    rows = sum(one.rows for one in source.found())
    return rows / (time.monotonic() - begun)


def trained(port: int, cache: str, batch: int, **wishes: object) -> float:
    """Rows a second, as tensors."""
    from yardmaster_runner import data

    dataset = data.ignite(cache, batch, port=port, **wishes)  # type: ignore[arg-type]
    begun, rows = time.monotonic(), 0
    for one in dataset:
        rows += int(one["key"].shape[0])
    return rows / (time.monotonic() - begun)


def requests_alone(port: int, cache: str, page_rows: int) -> float:
    """Bytes a second."""
    connection = Connection(("127.0.0.1", port), Access((("127.0.0.1", port),)))
    begun, count = time.monotonic(), 0
    for partition in range(8):
        body = connection.ask(wire.OP_QUERY_SCAN, scan_request(wire.java_hash(cache), partition, page_rows)).body
        cursor = bytes(body[:8])
        count += len(body)
        while body[len(body) - 1]:
            body = connection.ask(wire.OP_QUERY_SCAN_PAGE, cursor).body
            count += len(body)
    connection.close()
    return count / (time.monotonic() - begun)


def raw_socket(total: int, piece: int) -> float:
    """Bytes a second: pieces that are asked for one after the other, from another process."""
    server = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if not child:
        end, _ = server.accept()
        content = bytearray(piece)
        while end.recv(1):
            end.sendall(content)
        os._exit(0)
    end, target = socket.create_connection(server.getsockname()), memoryview(bytearray(piece))
    begun = time.monotonic()
    for _ in range(total // piece):
        end.sendall(b"?")
        got = 0
        while got < piece:
            got += end.recv_into(target[got:], piece - got, socket.MSG_WAITALL)
    taken = time.monotonic() - begun
    end.close(), server.close(), os.waitpid(child, 0)
    return total / taken


def pyignite(python: str, port: int, cache: str, page_rows: int, most: int) -> float:
    """Rows a second."""
    command = [python, "-c", PYIGNITE, str(port), cache, str(page_rows), str(most)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    return float(done.stdout)


def measure(server: Ignite, python: str) -> None:
    port = server.ports[0]
    server.fill(f"blobs one-blobs 0 {LONG_ROWS} {LONG}", f"numbers one-numbers 0 {SHORT_ROWS}")
    megabytes, million = LONG / 1e6, 1e6
    if python:
        long = best(lambda: pyignite(python, port, "one-blobs", 20, 0)) * megabytes
        print(f"pyignite, 1 MB, 20 a page        {long:8.0f} MB/s")
        short = best(lambda: pyignite(python, port, "one-numbers", 1024, 30000))
        print(f"pyignite, 8 numbers, 1024 a page {short:8.0f} rows/s")
    print(f"raw socket, 20 MB pieces         {best(lambda: raw_socket(1000 << 20, 20 << 20)) / million:8.0f} MB/s")
    print(f"requests alone, 20 a page        {best(lambda: requests_alone(port, 'one-blobs', 20)) / million:8.0f} MB/s")
    for connections in (1, 2, 4):
        for page_rows in (20, None):
            rate = best(lambda c=connections, p=page_rows: read(port, "one-blobs", c, p)) * megabytes
            print(f"1 MB, {connections} connections, {page_rows or 'own'} a page {rate:14.0f} MB/s")
        rate = best(lambda c=connections: read(port, "one-numbers", c, None))
        print(f"8 numbers, {connections} connections          {rate:8.0f} rows/s")
    shapes = {"val": (LONG,)}
    for pages in (20, None):
        rate = best(lambda p=pages: trained(port, "one-blobs", 20, shapes=shapes, page_rows=p)) * megabytes
        print(f"1 MB as tensors of 20, {pages or 'own'} a page {rate:10.0f} MB/s")
    print(f"8 numbers as tensors of 256      {best(lambda: trained(port, 'one-numbers', 256)):8.0f} rows/s")


def main(arguments: list[str]) -> int:
    os.environ |= {"IGNITE_HEAP": "4096", "IGNITE_DATA": "3072", "IGNITE_JAVA": "-XX:+UseParallelGC"}
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    with tempfile.TemporaryDirectory() as folder, ignite(Path(folder) / "speed") as server:
        measure(server, arguments[0] if arguments else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
