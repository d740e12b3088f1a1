"""`platform/` is a source root: as a package it would shadow Python's own `platform` module."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_platform_has_no_init_file_and_holds_no_test():
    assert not (ROOT / "platform" / "__init__.py").exists()
    assert not [*(ROOT / "platform").rglob("test_*.py")]


def test_pythons_own_platform_module_wins_with_the_root_on_the_path():
    code = "import platform, uuid; print(platform.system()); print(platform.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert str(ROOT / "platform") not in done.stdout


def test_test_modules_of_folders_without_an_init_file_have_names_of_their_own():
    """Python would import the first of a name for all others, and pytest runs none of these."""
    files = (ROOT / "tests").rglob("test_*.py")
    names = Counter(one.name for one in files if not (one.parent / "__init__.py").exists())
    assert [name for name, times in names.items() if times > 1] == []
