"""Names that the portal knows, for completion: asked for at most a second and a half, and kept for a minute.

A key press must not wait for a portal that is slow or away: then what was kept is shown, or nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from yardmaster_client.cache import cache_folder
from yardmaster_client.errors import NotReachable, NotSignedIn, PortalError
from yardmaster_client.portal import Yardmaster

PATIENCE = 1.5
"""Seconds that the portal may take."""
FRESH = 60.0
"""Seconds for which an answer is kept."""
MOST = 200
"""The newest of each kind."""
_LONGEST = 100

Named = tuple[str, str]
"""A name, and a word about it."""


def names_of(subject: str, begins: str = "") -> Sequence[Named]:
    """The newest names of a subject (`jobs`, `datasets`, …), each once; where an id is typed, ids."""
    try:
        with Yardmaster.from_environment() as portal:
            rows = _kept_or_asked(portal, subject)
    except (NotSignedIn, OSError, ValueError):
        return []
    named = list(
        {row["name"]: (row["name"], row["about"]) for row in reversed(rows) if _is_shown(row["name"])}.values()
    )
    named.reverse()
    if begins and not any(name.startswith(begins) for name, _ in named):
        return [(row["id"], row["name"] if _is_shown(row["name"]) else "") for row in rows]
    return named


def _is_shown(name: str) -> bool:
    return bool(name) and name.isprintable() and len(name) <= _LONGEST


def _kept_or_asked(portal: Yardmaster, subject: str) -> list[dict[str, str]]:
    who = hashlib.sha256(f"{portal.transport.url}\n{portal.transport.token}\n{subject}".encode()).hexdigest()[:32]
    file = cache_folder() / "completion" / f"{who}.json"
    kept = _read(file)
    if kept is not None and 0 <= time.time() - kept[0] < FRESH:
        return kept[1]
    asked = _asked(lambda: [_row(one) for one in islice(_SUBJECTS[subject](portal), MOST)])
    if asked is None:
        return kept[1] if kept is not None else []
    with contextlib.suppress(OSError):
        _write(file, asked)
    return asked


def _asked(ask: Callable[[], list[dict[str, str]]]) -> list[dict[str, str]] | None:
    """None where it takes too long or is refused. Who asks is left behind and ends with the program."""
    answers: list[list[dict[str, str]]] = []

    def run() -> None:
        with contextlib.suppress(PortalError, NotReachable, OSError, KeyError, TypeError, ValueError, RuntimeError):
            answers.append(ask())

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return answers[0] if answers else None


_SUBJECTS: dict[str, Callable[[Yardmaster], Any]] = {
    "jobs": lambda portal: portal.jobs.list(page_size=MOST),
    "datasets": lambda portal: portal.datasets.list(page_size=MOST),
    "code": lambda portal: portal.code.list(page_size=MOST),
    "models": lambda portal: portal.models.list(page_size=MOST),
    "sessions": lambda portal: portal.sessions.list(),
    "namespaces": lambda portal: portal.namespaces(),
    "images": lambda portal: portal.images.list(),
    "spark_clusters": lambda portal: portal.spark_clusters.list(),
}


def _row(one: Any) -> dict[str, str]:
    name = getattr(one, "slug", None) or one.name
    about = (
        getattr(one, "phase", "")
        or getattr(one, "state", "")
        or getattr(one, "namespace_slug", "")
        or getattr(one, "description", "")
    )
    return {"id": one.id, "name": name, "about": about or ""}


def _read(file: Path) -> tuple[float, list[dict[str, str]]] | None:
    try:
        found = json.loads(file.read_text())
        return float(found["at"]), [{key: str(row[key]) for key in ("id", "name", "about")} for row in found["rows"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(file: Path, rows: list[dict[str, str]]) -> None:
    """For the user's own eyes: names of jobs and data may say much."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        json.dump({"at": time.time(), "rows": rows}, stream)
    draft.replace(file)
