"""A node without any protection, and a cluster with TLS and passwords; scripts that run where tasks run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.env import task_python
from tests.real.ignite import Ignite, ignite
from tests.real.portal import ROOT


def environment_of(server: Ignite) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "platform"), "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "0", **server.variables(),
    }  # fmt: skip


def in_task(server: Ignite, file: str, name: str, *arguments: object, **changed: str) -> dict:
    """What a function of a file beside this one returns, run where tasks run."""
    command = [task_python(), str(Path(__file__).with_name(file)), name, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment_of(server) | changed, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="package")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ignite]:
    with ignite(tmp_path_factory.mktemp("ignite") / "plain") as server:
        server.fill(
            "numbers one-numbers 0 3000", "pictures one-pictures 0 100", "pairs pairs 0 200", "longs all-longs 0 500",
            "longs one-longs 0 64", "blobs one-blobs 0 12 300000",
            "sql CREATE TABLE KITTENS (ID LONG PRIMARY KEY, NAME VARCHAR, WEIGHT DOUBLE)",
            "sql CREATE TABLE CATS (ID LONG PRIMARY KEY, NAME VARCHAR)",
            "sql INSERT INTO CATS VALUES (1, 'A'), (2, 'B'), (3, 'C')",
            "sql INSERT INTO KITTENS VALUES (1, 'WARM KITTY', 0.5), (2, 'SOFT KITTY', NULL), (3, 'LITTLE BALL', 1.5)",
        )  # fmt: skip
        yield server


@pytest.fixture(scope="package")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ignite]:
    with ignite(tmp_path_factory.mktemp("ignite") / "secure", secure=True) as server:
        server.fill(
            "odd one-odd 0 3", "pictures one-pictures 0 20",
            "sql CREATE TABLE KITTENS (ID LONG PRIMARY KEY, NAME VARCHAR)",
            "sql INSERT INTO KITTENS VALUES (1, 'WARM')",
            "sql CREATE TABLE EMPTY (ID LONG PRIMARY KEY, NAME VARCHAR)",
        )  # fmt: skip
        yield server
