"""The scripts of the pages: their types hold, and their own tests pass. Where node and its packages are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FRONTEND = Path(__file__).resolve().parents[3] / "frontend"
NODE = shutil.which("node") or shutil.which("node", path=str(FRONTEND.parent / ".venv" / "bin"))

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="there is no node"),
    pytest.mark.skipif(not (FRONTEND / "node_modules").is_dir(), reason="frontend/node_modules is not installed"),
]


def run(*arguments: str) -> None:
    assert NODE is not None
    ended = subprocess.run([NODE, *arguments], cwd=FRONTEND, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-8000:]}\n{ended.stderr[-2000:]}"


@pytest.mark.slow
def test_the_scripts_of_the_pages_pass_their_own_tests():
    run("test.mjs")


@pytest.mark.slow
def test_the_types_of_the_scripts_hold():
    run("node_modules/typescript/bin/tsc", "--noEmit")
