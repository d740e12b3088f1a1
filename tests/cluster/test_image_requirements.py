"""What the task image installs is what the project's lock says. Needs no cluster."""

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


def test_the_task_image_installs_what_the_lock_says() -> None:
    everything, image = locked("requirements.txt"), locked("deploy/images/task/requirements.txt")
    assert {name: everything.get(name) for name in image} == image
    assert all(image.values())


def test_the_task_image_trains_and_is_no_portal() -> None:
    names = {line.split("==")[0] for line in locked("deploy/images/task/requirements.txt")}
    assert {"tensorflow", "tf-keras", "scikit-learn"} <= names
    assert not {"django", "celery", "pytest"} & names
