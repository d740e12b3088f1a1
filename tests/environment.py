"""What every test shares: a portal home of its own, set before Django reads its settings; and the folder of a run.

A plug-in and not a conftest, because Django's settings are read before the first conftest is (`-p` in pyproject.toml).
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

_home = Path(tempfile.mkdtemp(prefix="yardmaster-tests-"))
os.environ["YARDMASTER_HOME"] = str(_home)
os.environ["YARDMASTER_SECRET_KEY"] = "only-for-tests-" + "x" * 40
os.environ["YARDMASTER_STATIC_ROOT"] = str(_home / "static")  # empty: pages work before assets are built
(_home / "static").mkdir()
os.environ.setdefault("YARDMASTER_LOG_LEVEL", "WARNING")

# Hundreds of processes import the same modules. Images of containers often set this, and then each compiles them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What the tests' own processes write need not outlive a power cut; flushing tens of thousands of small files takes
# minutes on a slow disk. The processes of a portal flush as always.
os.fsync = os.fdatasync = lambda _: None

# One folder for all workers of a run, for what is made once and copied: those of pytest-xdist inherit it.
Path(os.environ.setdefault("YARDMASTER_TESTS_RUN", str(_home / "run"))).mkdir(exist_ok=True)


def pytest_unconfigure() -> None:
    shutil.rmtree(_home, ignore_errors=True)
