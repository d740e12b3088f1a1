"""A migrated, empty SQLite database: made once for all workers of a test run, since to migrate takes ten seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.real.once import once

ROOT = Path(__file__).resolve().parents[2]


def migrate(environment: Mapping[str, str]) -> None:
    """`manage.py migrate`, as before the first start of a portal with this environment."""
    command = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def migrated() -> Path:
    """The file to copy."""
    return once("migrated.sqlite3", _make)


def _make(file: Path) -> None:
    base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
    with tempfile.TemporaryDirectory(prefix="yardmaster-migrated-") as home:
        told = {
            "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
            "YARDMASTER_HOME": home,
            "YARDMASTER_SECRET_KEY": "only-for-migrations-" + "x" * 40,
        }
        migrate({**base, **told})
        file.write_bytes((Path(home) / "portal.sqlite3").read_bytes())
