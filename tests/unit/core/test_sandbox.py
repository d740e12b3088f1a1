"""Programs in a process of their own: what they wrote counts, how long they take does not matter to us."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from yardmaster.sandbox import process as sandbox
from yardmaster.sandbox.process import BoundedProcess

ECHO = "import sys; print(sys.stdin.read().upper())"
STUCK = "import sys, time; print('begun', flush=True); time.sleep(60)"
UNTIL = "import os, time\nwhile not os.path.exists({!r}): time.sleep(0.02)"
BROKEN = "import sys; print('half', flush=True); sys.exit('no')"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Our source root holds this program only."""
    monkeypatch.setattr(sandbox, "_SOURCE_ROOT", str(tmp_path))

    def write(text: str, **options: int) -> BoundedProcess:
        (tmp_path / "program.py").write_text(text)
        return BoundedProcess("program", at_once=1, **options)

    return write


def test_a_program_gets_its_task_and_its_answer_comes_back(program):
    ended = program(ECHO).run(b"hello", seconds=20)
    assert ended is not None
    assert (ended.output, ended.is_well) == (b"HELLO\n", True)


def test_a_late_program_is_killed_and_what_it_had_written_is_kept(program):
    begun = time.monotonic()
    ended = program(STUCK).run(b"", seconds=5)  # a Python must start in it
    assert ended is not None
    assert (ended.output, ended.is_well) == (b"begun\n", False)
    assert time.monotonic() - begun < 30


def test_a_program_that_breaks_says_so_in_our_log(program, caplog):
    caplog.set_level("INFO")
    ended = program(BROKEN).run(b"", seconds=20)
    assert ended is not None
    assert (ended.output, ended.is_well) == (b"half\n", False)
    assert "no" in caplog.text


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_writes_without_end_is_killed_and_little_of_it_is_kept(program, monkeypatch, stream):
    monkeypatch.setattr(sandbox, "_MOST_WORDS", 1000)
    flood = f"import sys\nwhile True: sys.{stream}.write('x' * 4096)"
    begun = time.monotonic()
    ended = program(flood, most_output=1000).run(b"", seconds=60)
    assert ended is not None
    assert ended.is_well is False
    assert len(ended.output) <= 1000
    assert time.monotonic() - begun < 30


def test_a_program_that_does_not_read_its_task_answers_all_the_same(program):
    ended = program("print('no')").run(b"x" * (1 << 20), seconds=20)
    assert ended is not None
    assert (ended.output, ended.is_well) == (b"no\n", True)


def test_no_more_run_at_once_than_may(program, tmp_path):
    may_end = tmp_path / "may_end"
    programs = program(UNTIL.format(str(may_end)))
    first = threading.Thread(target=lambda: programs.run(b"", seconds=60))
    first.start()
    while programs._free.acquire(blocking=False):  # until the first has its place
        programs._free.release()
        time.sleep(0.01)
    try:
        assert programs.run(b"", seconds=0.1) is None
    finally:
        may_end.touch()
        first.join()
