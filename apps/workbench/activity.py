"""When a Jupyter was last used, as it says itself: by its kernels and terminals. An open socket is no use: a browser
that was left open over night has one.

Rules as in Kubeflow's and JupyterHub's cullers, with two of their faults mended: a kernel that computes in silence is
used, and so is a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from apps.hosting.addresses import address_of
from apps.hosting.dialing import AnswerTooLarge, NotReached, TooSlow, dial
from apps.hosting.state import token_for
from apps.workbench.models import WorkbenchSession
from yardmaster.errors import YardmasterError

SECONDS = 3.0
MOST_ANSWER = 1 << 20
MOST_COUNTED = 1000


def used_until(kernels: Any, terminals: Any, now: datetime) -> datetime | None:
    """The newest use that these answers of Jupyter's API tell of; None where there is none. Pure: they may be
    anything. A time to come counts as now."""
    found = [_moment(one, now) for one in _rows(kernels) + _rows(terminals)]
    if any(one.get("execution_state") in ("busy", "starting", "restarting") for one in _rows(kernels)):
        return now
    return max((one for one in found if one is not None), default=None)


def _rows(answer: Any) -> list[Mapping[str, Any]]:
    some = answer[:MOST_COUNTED] if isinstance(answer, list) else []
    return [one for one in some if isinstance(one, Mapping)]


def _moment(row: Mapping[str, Any], now: datetime) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(row.get("last_activity"))[:40])
    except ValueError:
        return None
    return min(found if found.tzinfo else found.replace(tzinfo=UTC), now)


def last_use(session: WorkbenchSession, now: datetime) -> datetime | None:
    """Ask the Jupyter. None where it does not answer, or tells of no use."""
    if session.job is None:
        return None
    answers = []
    for subject in ("kernels", "terminals"):
        try:
            address = address_of(session.job)
            if address is None:
                return None
            path = f"{session.prefix}api/{subject}"
            reply = dial(address, "GET", path, key=token_for(session.job), seconds=SECONDS, most=MOST_ANSWER)
            answers.append(json.loads(reply.body) if reply.status == 200 else None)
        except (YardmasterError, NotReached, TooSlow, AnswerTooLarge, ValueError, RecursionError):
            return None
    return used_until(answers[0], answers[1], now)
