"""The pod that tries whether processes are bounded: a restricted one, and what is made of what it says or does not."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from yardmaster.engines.base import Finding
from yardmaster.engines.kubernetes.probes.pod import ProbeAnswer
from yardmaster.engines.kubernetes.probes.processes import BOUNDED, MOST, PROGRAM, UNBOUNDED, finding_of


@pytest.mark.parametrize(("bound", "code"), [(30, BOUNDED), (5000, UNBOUNDED)])
def test_the_program_says_how_many_threads_it_could_begin(tmp_path, bound, code):
    told = tmp_path / "told"
    begins = "import threading, _thread\n_begun, _real = [], _thread.start_new_thread\n"
    refuses = f"""
def _start(self):
    if len(_begun) >= {bound}:
        raise RuntimeError("can't start new thread")
    _begun.append(self)
threading.Thread.start = _start
"""
    program = begins + refuses + PROGRAM.replace("/dev/termination-log", str(told))
    ast.parse(PROGRAM)
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == code
    assert told.read_text() == str(min(bound, MOST))


def test_what_it_told_is_said():
    bounded, unbounded = finding_of(ProbeAnswer("2041", BOUNDED)), finding_of(ProbeAnswer(str(MOST), UNBOUNDED))
    assert bounded == Finding(True, "A pod may have no more than about 2041 threads and processes.")
    assert unbounded.is_well is False
    assert "podPidsLimit" in unbounded.remedy


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (ProbeAnswer("", 137, "The pod ended with 137"), "ended with 137"),
        (ProbeAnswer("", 0, "It told nothing."), "told nothing"),
        (ProbeAnswer("Traceback", 1), "Traceback"),
        (ProbeAnswer(problem="The pod that was to try it could not begin: no such image"), "no such image"),
    ],
)
def test_what_tells_nothing_is_never_taken_for_a_bound(told, said):
    found = finding_of(told)
    assert found.is_well is None
    assert "not known" in found.message
    assert said in found.message
