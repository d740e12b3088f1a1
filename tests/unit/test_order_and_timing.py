"""In which order `make test` runs the tests, which it keeps together, and what it says of their time."""

from __future__ import annotations

import re
from pathlib import Path

from tests.scheduling import BUSY, FIRST, SHARED, WAITING, in_turn
from tests.timing import by_folder

ROOT = Path(__file__).resolve().parents[2]
OF_THE_FULL_WORLD = re.compile(r"\b(full_world|ada_state|ada): ")


def test_all_files_that_use_the_full_world_are_in_its_lane():
    files = sorted((ROOT / "tests/browser").glob("test_*.py"))
    found = [str(one.relative_to(ROOT)) for one in files if OF_THE_FULL_WORLD.search(one.read_text())]
    assert found == sorted(SHARED["full world"])


def test_every_folder_that_comes_early_is_there():
    assert [folder for folder in (*BUSY, *WAITING) if not (ROOT / folder).is_dir()] == []
    assert [file for file in FIRST if not (ROOT / file).is_file()] == []


def test_a_file_that_takes_half_of_the_time_is_begun_first():
    longest = f"{FIRST[0]}::a"
    assert in_turn(["tests/cluster/test_a.py::a", longest], str) == [longest, "tests/cluster/test_a.py::a"]


def test_files_that_compute_and_files_that_wait_take_turns_and_all_others_follow():
    unit, page, page2 = "tests/unit/test_u.py::a", "tests/browser/test_p.py::a", "tests/browser/test_p.py::b"
    fault, attack, job = (
        "tests/integration/faults/test_f.py::a",
        "tests/hostile/test_h.py::a",
        "tests/integration/jobs/x",
    )
    assert in_turn([unit, page, page2, fault, attack, job], str) == [page, page2, attack, job, fault, unit]


def test_no_test_is_lost_where_those_of_a_file_do_not_follow_each_other():
    mixed = [
        "tests/browser/test_p.py::a",
        "tests/unit/test_u.py::a",
        "tests/browser/test_p.py::b",
        "tests/unit/x.py::a",
    ]
    assert sorted(in_turn(mixed, str)) == sorted(mixed)


def test_seconds_are_added_up_for_each_folder():
    spent = [("tests/a/test_x.py::test_1[a/b]", 1.0), ("tests/a/test_y.py::test_2", 2.5), ("tests/b/test_z.py::t", 9.0)]
    assert by_folder(spent) == [("tests/b", (9.0, 1)), ("tests/a", (3.5, 2))]
