"""A worker of a preparation stages the files that it reads, and knows of the others."""

from __future__ import annotations

import json

import pytest

STEP = "def map_record(record):\n    return record\n"


@pytest.fixture
def ordered(portal):
    """20 reviews of two classes, a table of notes and a file of no format, on two pages, for two workers."""

    def order(**options):
        portal.orders(
            STEP, spec_program="prepare", spec_strategy="batch", spec_options=options, spec_entry_point="",
            spec_roles={"worker": {"replicas": 2}},
        )  # fmt: skip
        names = [f"{label}/{number:02}.txt" for label in ("bad", "good") for number in range(10)]
        files = [portal.add_file(name, name.encode()) for name in sorted([*names, "notes.csv", "README"])]
        portal.pages = {files[7]["path"]: {"files": files[8:], "next": ""}}
        one = {"version": "v1", "name": "", "files": files[:8], "next": files[7]["path"]}
        portal.order["inputs"] = [one]
        if not options.get("step"):
            portal.order["code"] = None
        return names

    return order


def staged(task) -> set[str]:
    data = task.work / "data"
    return {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}


def test_two_workers_stage_each_file_once_and_know_the_classes_of_all(task, portal, ordered):
    names = ordered()
    found = []
    for index in (0, 1):
        task.variables = {"YARDMASTER_INDEX": str(index), "YARDMASTER_WORK_DIR": str(task.folder / f"work-{index}")}
        assert task.run() == 65  # there is no NumPy here
        data = task.folder / f"work-{index}" / "data"
        found.append({str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()})
        ending = json.loads((task.folder / f"work-{index}" / "exit.json").read_text())
        assert "needs NumPy" in ending["message"]
    assert sorted([*found[0], *found[1]]) == sorted(names)
    assert len(found[0]) == len(found[1]) == 10
    assert sorted(name for name in portal.served if name.endswith(".txt")) == sorted(names)
    assert b"format text, 10 of 20 files" in portal.lines()


def test_with_a_step_files_of_other_formats_come_too(task, portal, ordered):
    ordered(step="train.py")
    assert task.run() == 0  # few records need neither NumPy nor TensorFlow
    assert len(staged(task)) == 12
    assert {"notes.csv", "README"} <= staged(task)


def test_a_table_is_staged_by_every_worker_and_nothing_else(task, portal, ordered):
    ordered(format="csv")
    portal.files["notes.csv"] = b"notes.csv"  # its header alone
    assert task.run() == 65
    assert staged(task) == {"notes.csv"}


def test_where_no_file_has_the_format_the_program_says_so(task, portal, ordered):
    ordered(format="numpy")
    assert task.run() == 65
    assert staged(task) == set()
    assert "no file that ends in one of .npy" in json.loads((task.work / "exit.json").read_text())["message"]
