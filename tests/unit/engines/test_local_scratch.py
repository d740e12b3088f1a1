"""A task's home and temporary folder: its own, short enough for sockets, and gone with the run."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from yardmaster.engines.supervision import scratch
from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.job.spec import Role

TASK = (Role.WORKER, 0)
DEEP = "x" * 90


@pytest.mark.parametrize("depth", ["", DEEP])
def test_both_are_in_the_work_folder_and_take_a_socket_with_a_long_name(depth: str):
    with tempfile.TemporaryDirectory(prefix="ym-", dir="/tmp") as top:
        check(RunFolder(Path(top) / depth / "run"))


def check(folder: RunFolder) -> None:
    folder.work(*TASK).mkdir(parents=True)
    told = scratch.make(folder, *TASK)
    assert told == scratch.make(folder, *TASK) == scratch.variables(folder, *TASK)
    for place in told.values():
        assert Path(place).resolve().is_relative_to(folder.work(*TASK).resolve())
    assert len(os.fsencode(told["TMPDIR"])) <= 107 - len("/pymp-abcdefgh/listener-abcdefgh")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(told["TMPDIR"] + "/listener-abcdefgh")
    scratch.remove(folder)
    assert not Path(told["TMPDIR"]).is_symlink()
    scratch.remove(folder)


def test_a_folder_below_tmp_that_is_not_ours_is_not_used(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(scratch, "_SHORT", tmp_path)
    (tmp_path / f"yardmaster-{os.getuid()}-tasks").mkdir()
    (tmp_path / f"yardmaster-{os.getuid()}-tasks").chmod(0o777)
    folder = RunFolder(tmp_path / DEEP / "run")
    folder.work(*TASK).mkdir(parents=True)
    assert Path(scratch.make(folder, *TASK)["TMPDIR"]).is_relative_to(folder.work(*TASK))


def test_links_of_runs_that_are_gone_do_not_pile_up(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(scratch, "_SHORT", tmp_path)
    for name in ("first", "second"):
        folder = RunFolder(tmp_path / DEEP / name)
        folder.work(*TASK).mkdir(parents=True)
        scratch.make(folder, *TASK)
        (links,) = tmp_path.glob("yardmaster-*-tasks")
        assert len(list(links.iterdir())) == 1
        shutil.rmtree(folder.path)
