"""What every test shares: a portal home of its own, set before Django reads its settings."""

import os
import tempfile
from pathlib import Path

_home = Path(tempfile.mkdtemp(prefix="yardmaster-tests-"))
os.environ["YARDMASTER_HOME"] = str(_home)
os.environ["YARDMASTER_SECRET_KEY"] = "only-for-tests-" + "x" * 40
os.environ.setdefault("YARDMASTER_LOG_LEVEL", "WARNING")


def pytest_unconfigure() -> None:
    import shutil

    shutil.rmtree(_home, ignore_errors=True)
