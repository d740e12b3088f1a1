"""A portal that no task could reach does not start, and says which variable is at fault."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HERE = "http://10.0.0.10:8080"
HOSTS = "127.0.0.1,10.0.0.10"


def checked(**told: str) -> subprocess.CompletedProcess[str]:
    """What `make up` does before anything else runs: its command asks for the system check first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("YARDMASTER_")}
    ours = {name: os.environ[name] for name in ("YARDMASTER_HOME", "YARDMASTER_SECRET_KEY")}
    environment = {**kept, **ours, "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}", **told}
    command = [sys.executable, "manage.py", "check"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"YARDMASTER_KUBERNETES": "1"}, "YARDMASTER_TASK_URL is http://127.0.0.1:8080"),
        (
            {"YARDMASTER_KUBERNETES": "1", "YARDMASTER_TASK_URL": HERE, "YARDMASTER_HOST": "127.0.0.1"},
            "YARDMASTER_HOST is 127.0.0.1",
        ),
        ({"YARDMASTER_TASK_URL": HERE, "YARDMASTER_ALLOWED_HOSTS": ""}, "YARDMASTER_ALLOWED_HOSTS lacks 10.0.0.10"),
    ],
)
def test_settings_that_contradict_each_other_stop_the_start(told: dict[str, str], named: str) -> None:
    done = checked(**{"YARDMASTER_ALLOWED_HOSTS": HOSTS, **told})
    assert done.returncode == 1
    assert "yardmaster.E004" in done.stderr
    assert named in done.stderr


def test_settings_of_one_machine_start() -> None:
    done = checked(YARDMASTER_HOST="127.0.0.1")
    assert done.returncode == 0, done.stderr
