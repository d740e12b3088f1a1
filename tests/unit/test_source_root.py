"""`platform/` is a source root: as a package it would shadow Python's own `platform` module."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_platform_has_no_init_file_and_holds_no_test():
    assert not (ROOT / "platform" / "__init__.py").exists()
    assert not [*(ROOT / "platform").rglob("test_*.py")]


def test_pythons_own_platform_module_wins_with_the_root_on_the_path():
    code = "import platform, uuid; print(platform.system()); print(platform.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert str(ROOT / "platform") not in done.stdout
