"""The store of checkpoints in a real Apache Ignite, for tests: nodes of the session, and looking into its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.real.ignite import Ignite, ignite
from yardmaster.storage.ignite_link import access_of
from yardmaster_runner.data.ignite_reader import keyed, wire
from yardmaster_runner.data.ignite_reader.connection import Connection

OP_CACHE_CLEAR, OP_CACHE_GET_SIZE = 1013, 1020
TABLES = ("OBJECTS", "UPLOADS", "LOOSE")


@pytest.fixture(scope="session")
def ignite_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ignite]:
    with ignite(tmp_path_factory.mktemp("ignite-store") / "plain") as server:
        yield server


@pytest.fixture(scope="session")
def ignite_secure_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ignite]:
    with ignite(tmp_path_factory.mktemp("ignite-store") / "secure", secure=True) as server:
        yield server


def connection_to(server: Ignite, number: int = 0) -> Connection:
    options = server.store_options()
    access = access_of(
        f"127.0.0.1:{server.ports[number]}", *(str(options.get(one, "")) for one in
        ("username", "password_file", "certificate_file")),
    )  # fmt: skip
    return Connection(access.addresses[0], access)


def asked(server: Ignite, text: str, arguments: Sequence[Any] = (), number: int = 0) -> list[tuple[Any, ...]]:
    connection = connection_to(server, number)
    try:
        return keyed.statement(connection, text, arguments)
    finally:
        connection.close()


def caches(server: Ignite) -> set[str]:
    connection = connection_to(server)
    try:
        answer = connection.ask(wire.OP_CACHE_GET_NAMES).reader()
        return {answer.text() or "" for _ in range(answer.int32())}
    finally:
        connection.close()


def emptied(server: Ignite, name: str = "YARDMASTER") -> None:
    """Nothing is in the store, as if it had just been made."""
    if f"{name}_PIECES" not in caches(server):
        return
    connection = connection_to(server)
    try:
        for table in TABLES:
            keyed.statement(connection, f"DELETE FROM {name}_{table}")
        connection.ask(OP_CACHE_CLEAR, _cache(name))
    finally:
        connection.close()


def pieces_held(server: Ignite, name: str = "YARDMASTER", number: int = 0) -> int:
    """How many pieces there are, those included that nothing refers to."""
    connection = connection_to(server, number)
    try:
        return connection.ask(OP_CACHE_GET_SIZE, _cache(name) + b"\0\0\0\0").reader().int64()
    finally:
        connection.close()


def rows_held(server: Ignite, table: str, name: str = "YARDMASTER", number: int = 0) -> int:
    return asked(server, f"SELECT COUNT(*) FROM {name}_{table}", number=number)[0][0]


def _cache(name: str) -> bytes:
    return wire.java_hash(f"{name}_PIECES").to_bytes(4, "little", signed=True) + b"\0"
