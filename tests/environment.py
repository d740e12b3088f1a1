"""What every test shares: a portal home of its own, set before Django reads its settings.

A plug-in and not a conftest, because Django's settings are read before the first conftest is (`-p` in pyproject.toml).
"""

import os
import shutil
import tempfile
from pathlib import Path

_home = Path(tempfile.mkdtemp(prefix="yardmaster-tests-"))
os.environ["YARDMASTER_HOME"] = str(_home)
os.environ["YARDMASTER_SECRET_KEY"] = "only-for-tests-" + "x" * 40
os.environ["YARDMASTER_STATIC_ROOT"] = str(_home / "static")  # empty: pages work before assets are built
(_home / "static").mkdir()
os.environ.setdefault("YARDMASTER_LOG_LEVEL", "WARNING")


def pytest_unconfigure() -> None:
    shutil.rmtree(_home, ignore_errors=True)
