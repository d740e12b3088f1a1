"""Migrated, empty databases. To migrate takes seconds of a core, so what comes of it is kept for later runs."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.real.kept import kept
from tests.real.once import once

ROOT = Path(__file__).resolve().parents[2]
_IMPORT = re.compile(r"^(?:from|import) ((?:apps|yardmaster|portal)[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)


def migrate(environment: Mapping[str, str]) -> None:
    """`manage.py migrate`, as before the first start of a portal with this environment."""
    command = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def migrated() -> Path:
    """An SQLite database to copy."""
    return once(
        "migrated.sqlite3", lambda draft: shutil.copyfile(kept("migrated.sqlite3", migrations_digest(), _make), draft)
    )


@functools.cache
def migrations_digest() -> str:
    """Of all that a migrated database depends on: the migrations, the modules of ours that they import, the settings,
    and the versions of what is installed."""
    migrations = sorted(ROOT.glob("apps/*/migrations/*.py"))
    imported = {file for one in migrations for file in _modules_in(one.read_text())}
    others = [*sorted(imported), ROOT / "requirements.txt", *sorted(ROOT.glob("platform/portal/*settings*.py"))]
    digest = hashlib.sha256(sys.version.encode())
    for file in [*migrations, *others]:
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _modules_in(text: str) -> Iterator[Path]:
    for module, names in _IMPORT.findall(text):
        for dotted in (module, *(f"{module}.{name.strip()}" for name in names.split(","))):
            for base in (ROOT, ROOT / "platform"):
                file = base.joinpath(*dotted.split(".")).with_suffix(".py")
                if file.is_file():
                    yield file


def environment_of_migrations(home: Path) -> dict[str, str]:
    """Of a portal with the default settings and this home."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
    return base | {
        "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
        "YARDMASTER_HOME": str(home),
        "YARDMASTER_SECRET_KEY": "only-for-migrations-" + "x" * 40,
    }


def _make(file: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="yardmaster-migrated-") as home:
        migrate(environment_of_migrations(Path(home)))
        shutil.copyfile(Path(home) / "portal.sqlite3", file)
