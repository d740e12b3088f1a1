"""A runner whose task is a server: no code is fetched, data is, and what goes wrong is told in words for servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

SERVER = {"worker": {"replicas": 1}, "ps": {"replicas": 1}}


def serve_with(task: Any, portal: Any, folder: Path, tensorflow: str | None) -> int:
    """Let the runner start the server program in a Python that has this in the place of TensorFlow, or none."""
    packages = folder / "packages" / "tensorflow"
    if tensorflow is not None:
        (packages / "compat").mkdir(parents=True)
        for file in (packages / "__init__.py", packages / "compat" / "__init__.py"):
            file.write_text("")
        (packages / "compat" / "v1.py").write_text(tensorflow)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages.parent}:$PYTHONPATH" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    data = {"version": "d", "name": "", "files": [portal.add_file("words.txt", b"data")]}
    portal.orders("", code=None, inputs=[data], spec_strategy="in_graph", spec_roles=SERVER)
    portal.order["spec"] |= {"code": None, "entry_point": ""}
    cluster = {"worker": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"]}
    task.variables = {"YARDMASTER_PYTHON": str(python), "YARDMASTER_CLUSTER": json.dumps(cluster)}
    return int(task.run())


def ending_of(task: Any) -> dict[str, Any]:
    found = json.loads((task.work / "exit.json").read_text())
    assert isinstance(found, dict)
    return found


SERVES = """
import os, types
__version__ = "2.x"
class Server:
    def __init__(self, cluster, job_name, task_index):
        print("asked for", sorted(cluster), job_name, task_index, os.listdir(os.environ["DATA_DIR"]), flush=True)
    def join(self):
        {join}
train = types.SimpleNamespace(Server=Server)
"""


def test_the_server_learns_its_place_finds_the_data_and_says_where_it_serves(task, portal, tmp_path):
    code = serve_with(task, portal, tmp_path, SERVES.format(join="raise SystemExit(7)"))
    assert code == 7
    asked, serves = portal.lines()
    assert asked == b"asked for ['ps', 'worker'] worker 0 ['words.txt']"
    assert serves == b"TensorFlow 2.x serves at grpc://127.0.0.1:1 as /job:worker/task:0."
    assert not any("train.py" in path for path in portal.served)


@pytest.mark.parametrize(
    ("tensorflow", "reason", "words"),
    [
        (None, "NoTensorFlow", "No module named 'tensorflow'"),
        (SERVES.format(join="return"), "ServerEnded", "The server ended by itself."),
        (SERVES.format(join="raise RuntimeError('port in use')"), "ServerEnded", "RuntimeError: port in use"),
        (SERVES.format(join="os.kill(os.getpid(), 9)"), "Killed", "signal 9"),
    ],
)
def test_how_a_server_ended_is_told_in_words_for_servers(task, portal, tmp_path, tensorflow, reason, words):
    assert serve_with(task, portal, tmp_path, tensorflow) != 0
    ending = ending_of(task)
    assert ending["reason"] == reason
    assert words in ending["message"]
    assert portal.reports[-1]["reason"] == reason
