"""What tasks are given, on one machine and in the image alike, fits what the portal is. Needs no cluster."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def locked(path: str) -> dict[str, frozenset[str]]:
    """Requirement line to its hashes."""
    found: dict[str, frozenset[str]] = {}
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / path).read_text()).replace("\\\n", " ")
    for line in text.splitlines():
        words = line.split(" --hash=")
        if words[0].strip():
            found[words[0].split(";")[0].strip()] = frozenset(word.strip() for word in words[1:])
    return found


def test_both_locks_name_the_same_versions_of_what_both_have_and_every_hash() -> None:
    portal, tasks = locked("requirements.txt"), locked("deploy/images/task/requirements.txt")
    names = {line.split("==")[0] for line in portal} & {line.split("==")[0] for line in tasks}
    assert names
    assert {line: hashes for line, hashes in portal.items() if line.split("==")[0] in names} == {
        line: hashes for line, hashes in tasks.items() if line.split("==")[0] in names
    }
    assert all(portal.values())
    assert all(tasks.values())


def test_one_machine_installs_for_tasks_what_the_image_does() -> None:
    lock = "deploy/images/task/requirements.txt"
    assert lock in (ROOT / "Makefile").read_text()
    assert lock in (ROOT / "deploy/images/task/Dockerfile").read_text()


def test_the_task_image_trains_and_is_no_portal() -> None:
    names = {line.split("==")[0] for line in locked("deploy/images/task/requirements.txt")}
    assert {"tensorflow", "tf-keras", "scikit-learn"} <= names
    assert not {"django", "celery", "pytest"} & names
