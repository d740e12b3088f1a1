"""Run where tasks run, against a real Ignite: `with_ignite.py FUNCTION ARGUMENTS` prints what was found as JSON.

What it does with TensorFlow is in `with_tensorflow.py`; nothing here imports it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import sys
import threading
import uuid
from collections import Counter
from pathlib import Path

from yardmaster_runner.data.ignite_reader import cluster
from yardmaster_runner.data.ignite_reader.access import Access, addresses_of, tls_context
from yardmaster_runner.data.ignite_reader.columns import Text
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError, IgniteUnavailable
from yardmaster_runner.data.ignite_reader.layout import Wishes, leaves
from yardmaster_runner.data.ignite_reader.query import Query
from yardmaster_runner.data.ignite_reader.source import CacheSource, QuerySource, Selection
from yardmaster_runner.data.ignite_reader.wire import java_hash
from yardmaster_runner.data.inputs import VARIABLE
from yardmaster_runner.data_service import DataService
from yardmaster_runner.shard_fetching import ShardFetching
from yardmaster_runner.shard_folder import ShardFolder


def access(**changed) -> Access:
    said = {name: os.environ.get("IGNITE_DATASET_" + name.upper()) for name in ("username", "password", "certfile")}
    said |= {"host": os.environ["IGNITE_DATASET_HOST"], "port": int(os.environ["IGNITE_DATASET_PORT"])} | changed
    tls = tls_context(said["certfile"], said.get("keyfile"), said.get("cert_password"), said.get("cafile"))
    return Access(
        addresses_of(said["host"], said["port"]), said["username"], said["password"], tls, said.get("timeout", 60.0)
    )


def source(cache: str, wishes: Wishes | None = None, selection: Selection | None = None, **changed) -> CacheSource:
    return CacheSource(access(**changed), cache, wishes or Wishes(), selection or Selection(), {})


def keys_of(columns, at: int = 0) -> list:
    return columns[at].objects().tolist() if isinstance(columns[at], Text) else columns[at].tolist()


def counted(keys: Counter, expected: range) -> dict:
    """What was lost, what came more than once, what came that is none."""
    return {
        "rows": sum(keys.values()), "lost": sorted(set(expected) - set(keys))[:9],
        "doubled": sorted(key for key, times in keys.items() if times > 1)[:9],
        "foreign": sorted(set(keys) - set(expected))[:9],
    }  # fmt: skip


def said(action) -> str:
    """What it says of itself with its code, where it fails."""
    try:
        action()
    except (IgniteDataError, IgniteUnavailable) as error:
        return f"{error.code}: {error}"
    return ""


def asked(query: str) -> QuerySource:
    return QuerySource(access(), Query(query), Wishes(), Selection())


def scan(cache: str, count: str, connections: str = "4", page_rows: str = "0", pause_at: str = "-1") -> dict:
    """Every key of a cache. At `pause_at` rows a line is printed, and it continues when it gets one."""
    found = source(cache, selection=Selection(connections=int(connections), page_rows=int(page_rows) or None))
    keys: Counter = Counter()
    is_paused = False
    for one in found.found():
        keys.update(keys_of(one.columns))
        if sum(keys.values()) > int(pause_at) >= 0 and not is_paused:
            is_paused = True
            print("paused", sum(keys.values()), flush=True)
            sys.stdin.readline()
    return {**counted(keys, range(int(count))), "partitions": len(found.partitions)}


def owners(cache: str) -> list[str]:
    """The nodes that hold partitions of a cache, as they call themselves."""
    asked_of, number = cluster.Cluster(access()), java_hash(cache)
    raw = {asked_of.owner(number, one) for one in range(asked_of.partitions(number))}
    return sorted(str(uuid.UUID(bytes=one[:8][::-1] + one[8:][::-1])) for one in raw if one)


def bad_input(keys_folder: str) -> dict:
    """What is said of everything that is wrong, on a server with TLS and passwords."""
    pem = keys_folder + "/{}.pem"
    sealed, own, whole = pem.format("client-sealed"), keys_folder + "/client.{}", Wishes(fields=["val.whole"])
    return {
        "right": said(lambda: source("one-odd", Wishes(fields=["val.whole"]))),
        "wrong password": said(lambda: source("one-odd", password="wrong")),
        "no user": said(lambda: source("one-odd", username=None, password=None)),
        "expired": said(lambda: source("one-odd", certfile=pem.format("expired"))),
        "no certificate": said(lambda: source("one-odd", certfile=None)),
        "sealed key": said(lambda: source("one-odd", whole, certfile=sealed, cert_password="password")),
        "sealed key, wrong password": said(lambda: source("one-odd", certfile=sealed, cert_password="wrong")),
        "no CA": said(lambda: source("one-odd", certfile=own.format("crt"), keyfile=own.format("key"))),
        "unknown cache": said(lambda: source("one-od")),
        "table": said(lambda: source("KITTENS")),
        "no tensor": said(lambda: source("one-odd")),
        "null": said(lambda: list(source("one-pictures").found())),
        "empty": said(lambda: source("SQL_PUBLIC_EMPTY")),
        "no partition": said(
            lambda: source("one-odd", Wishes(fields=["val.whole"]), selection=Selection(partitions=[8]))
        ),
        "no server": said(lambda: source("one-odd", host="127.0.0.1", port=1)),
        "bad query": said(lambda: asked("SELECT NOTHING FROM KITTENS")),
        "decimal": said(lambda: asked("SELECT ID * 1.5 AS X FROM KITTENS")),
        "write": said(lambda: asked("DELETE FROM KITTENS")),
    }  # fmt: skip


def rows() -> dict:
    """Rows of several kinds as they come."""
    pictures = source("one-pictures", Wishes(nulls={"val.votes": -1}, shapes={"val.pixels": (2, 3)}))
    pages = list(pictures.found())
    names = [one.path for one in leaves(pictures.layout)]
    row = next(
        {name: _plain(column, at) for name, column in zip(names, page.columns, strict=True)}
        for page in pages for at, key in enumerate(page.columns[0].tolist()) if key == 14
    )  # fmt: skip
    pairs = source("pairs")
    every = {
        (group, member)
        for one in pairs.found()
        for group, member in zip(one.columns[0].tolist(), keys_of(one.columns, 1), strict=True)
    }
    return {
        "row": {name: value.decode("latin-1") if isinstance(value, bytes) else value for name, value in row.items()},
        "pairs": len(every),
        "numbers": scan("one-numbers", "3000"),
        "few rows a page": scan("one-numbers", "3000", "3", "7"),
        "full pages": scan("one-longs", "64", "2", "1"),
        "replicated": scan("all-longs", "500"),
        "parts": [sorted(_part("one-numbers", (at, 3))) for at in range(3)] == [
            sorted(_of(range(at, 8, 3))) for at in range(3)],
        "local": scan_of(source("one-numbers", selection=Selection(is_local=True)), 3000),
        "table": sorted(
            (key, name.decode())
            for one in source("SQL_PUBLIC_KITTENS", Wishes(fields=["key", "val.NAME"])).found()
            for key, name in zip(one.columns[0].tolist(), keys_of(one.columns, 1), strict=True)
        ),
        "query": [
            [_plain(one, 0) for one in found.columns[1:]]
            for found in QuerySource(
                access(), Query("SELECT NAME, ID, WEIGHT FROM KITTENS WHERE ID > ? ORDER BY ID", (1,), page_rows=1),
                Wishes(nulls={"WEIGHT": -1.0}), Selection(page_rows=1)).found()
        ],
    }  # fmt: skip


def scan_of(found, count: int) -> dict:
    keys = Counter(key for one in found.found() for key in keys_of(one.columns))
    return counted(keys, range(count))


def _part(cache: str, share: tuple[int, int]) -> list[int]:
    return [key for one in source(cache, selection=Selection(share=share)).found() for key in keys_of(one.columns)]


def _of(partitions: range) -> list[int]:
    found = source("one-numbers", selection=Selection(partitions=list(partitions)))
    return [key for one in found.found() for key in keys_of(one.columns)]


def _plain(column, at: int):
    if isinstance(column, Text):
        return column.objects()[at]
    if hasattr(column, "splits"):
        return [
            one.decode() if isinstance(one, bytes) else one
            for one in column.values[column.splits[at] : column.splits[at + 1]].tolist()
        ]
    return column[at].tolist()


class Cutting(threading.Thread):
    """Passes connections on to a server, and cuts each after some bytes."""

    def __init__(self, port: int, dice: random.Random) -> None:
        super().__init__(daemon=True)
        self._to, self._dice, self.cuts = port, dice, 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.start()

    def run(self) -> None:
        while True:
            ours, _ = self._server.accept()
            theirs = socket.create_connection(("127.0.0.1", self._to))
            threading.Thread(target=self._pass, args=(ours, theirs, 1 << 40), daemon=True).start()
            left = self._dice.randrange(9_000, 60_000)
            threading.Thread(target=self._pass, args=(theirs, ours, left), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, left: int) -> None:
        with contextlib.suppress(OSError):
            while left > 0:
                data = source.recv(min(left, 4096))
                if not data:
                    break
                target.sendall(data)
                left -= len(data)
        if left == 0:
            self.cuts += 1
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def beside(cache: str, folder: str, *indexes: str) -> dict:
    """What some of three tasks of a job read, on two machines; `folder` has what tasks have agreed on."""
    kept, machines = Path(folder) / "agreed.json", ["127.0.0.1", "127.0.0.2", "127.0.0.1"]

    def agree(name: str, value: str) -> str:
        known = json.loads(kept.read_text()) if kept.exists() else {}
        kept.write_text(json.dumps({name: value} | known))
        return ({name: value} | known)[name]

    shards = ShardFolder(folder + "/shards", 1000)
    service = DataService(folder, [], shards, ShardFetching(shards, lambda *_: None), agree)
    asked_of, number = cluster.Cluster(access()), java_hash(cache)
    count = asked_of.partitions(number)
    found = {"machines": machines, "holders": [sorted(asked_of.addresses(number, one)) for one in range(count)]}
    for index in map(int, indexes):
        said = {"part": [index, 3], "inputs": [], "machines": machines, "socket": service.address}
        (Path(folder) / "inputs.json").write_text(json.dumps(said))
        one = CacheSource(access(), cache, Wishes(), Selection(), {VARIABLE: folder + "/inputs.json"})
        keys = sorted(key for page in one.found() for key in keys_of(page.columns))
        found[str(index)] = {"partitions": one.partitions, "keys": keys}
    service.close()
    return found


def held(cache: str) -> dict[str, list[int]]:
    """The keys of the partitions that are primary at each address."""
    asked_of, number = cluster.Cluster(access()), java_hash(cache)
    found: dict[str, list[int]] = {}
    for partition in range(asked_of.partitions(number)):
        there = source(cache, selection=Selection(partitions=[partition]))
        keys = [key for page in there.found() for key in keys_of(page.columns)]
        for address in asked_of.addresses(number, partition):
            found.setdefault(address, []).extend(keys)
    return {address: sorted(keys) for address, keys in found.items()}


def divided(text: str, partitioned: str = "") -> list[list[int]]:
    """The first column of what each of three tasks reads of a query."""
    chosen = {"": None, "yes": True, "no": False}[partitioned]
    return [
        sorted(key for page in one.found() for key in keys_of(page.columns))
        for one in (
            QuerySource(access(), Query(text), Wishes(), Selection(share=(index, 3), is_partitioned=chosen))
            for index in range(3)
        )
    ]


def cut() -> dict:
    """Every key of a cache, over connections that are cut again and again, each somewhere in a page."""
    cluster.AVOIDED = 0.0
    between = Cutting(int(os.environ["IGNITE_DATASET_PORT"]), random.Random(5))
    found = source("one-numbers", selection=Selection(page_rows=40, connections=3), port=between.port)
    return {**scan_of(found, 3000), "cuts": between.cuts}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
