"""A demonstration on a cluster leaves nothing there: what its portal made is removed when that portal has stopped,
however the demonstration ends. What was there before it stays.

Killed outright it cannot do so: its note of what was there before is then taken up by the next one, unless another
portal has lived in the same home meanwhile, to which it all belongs by now.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from portal.demo.portal import ROOT, PortalFailed
from portal.up import home as portal_home

PATIENCE = 90.0
NOTE = "demonstration.json"

Say = Callable[[str], None]


@contextmanager
def leaving_nothing(engine: str, home: Path, say: Say) -> Iterator[Callable[[], None]]:
    """A context that the demonstration's portal lives in. Gives what is to be called once that portal is up. Only on a
    cluster there is something to leave."""
    if engine != "kubernetes":
        yield lambda: None
        return
    portal_home.prepare(home)
    note = home / "run" / NOTE
    before = noted(note, home / "run" / "up.lock")
    if before is None:
        before = _engine_namespaces()
        note.write_text(json.dumps(before))
    try:
        yield note.touch
    finally:
        _leave(before, note, say)


def noted(note: Path, lock: Path) -> list[str] | None:
    """What an earlier demonstration, which was killed, wrote down; None where there is none, or where the home's lock
    was taken after it: then another portal has lived there."""
    with suppress(OSError, ValueError, TypeError):
        if note.stat().st_mtime >= lock.stat().st_mtime:
            return [str(one) for one in json.loads(note.read_text())]
    return None


def _leave(before: Sequence[str], note: Path, say: Say) -> None:
    say("Removing from the cluster what the demonstration made there ...")
    try:
        left = [one for one in _engine_namespaces("--remove", f"--keep={','.join(before)}", f"--patience={PATIENCE}")
                if one not in before]  # fmt: skip
    except KeyboardInterrupt:
        say("Left to the next demonstration: make demo ENGINE=kubernetes EXIT=1")
        raise
    except PortalFailed:
        say("It could not be removed; the next demonstration tries it again.")
        return
    if left:
        say(f"Still there after {PATIENCE:g} s, for the cluster to finish: {', '.join(left)}")
        return
    note.unlink(missing_ok=True)
    say("Nothing is left of it there.")


def _engine_namespaces(*arguments: str) -> list[str]:
    """Ids of the portal's namespaces that an engine keeps a namespace for. Ctrl-C reaches this process alone."""
    done = subprocess.run(
        [sys.executable, "manage.py", "engine_namespaces", *arguments], cwd=ROOT, capture_output=True, text=True,
        check=False, start_new_session=True, env=dict(os.environ), timeout=PATIENCE + 60,
    )  # fmt: skip
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise PortalFailed
    if done.stderr.strip():
        sys.stderr.write(done.stderr)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return [one for ids in found.values() for one in ids]
