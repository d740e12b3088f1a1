"""When a Jupyter was last used, as it says itself: by its kernels and terminals. An open socket is no use: a browser
that was left open over night has one.

Rules as in Kubeflow's and JupyterHub's cullers, with two of their faults mended: a kernel that computes in silence is
used, and so is a terminal in which a command runs (`yardmaster_runner/workbench/terminals.py`). The programs of the
session's owner can write these answers: with them they keep their own session, which they may anyway, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from apps.hosting.addresses import address_of
from apps.hosting.dialing import AnswerTooLarge, NotReached, TooSlow, dial
from apps.hosting.state import token_for
from apps.jobs.models import Job
from apps.workbench.models import WorkbenchSession
from yardmaster.engines.base import Address
from yardmaster.errors import YardmasterError

SECONDS = 3.0
MOST_ANSWER = 1 << 20
MOST_COUNTED = 1000


class NotAnswered(Exception):
    """It did not say when it was used: it is busy, hangs, or is not there."""


def used_until(kernels: Any, terminals: Any, now: datetime) -> datetime | None:
    """The newest use that these answers of Jupyter's API tell of; None where there is none. Pure: they may be
    anything. A time to come counts as now. What is busy is used; a kernel is `starting` until a page first asks it
    something, which may be never."""
    rows = _rows(kernels) + _rows(terminals)
    if any(one.get("execution_state") == "busy" for one in rows):
        return now
    found = [_moment(one, now) for one in rows]
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
    """Ask the Jupyter. None where it tells of no use. Raises `NotAnswered`."""
    if session.job is None:
        raise NotAnswered
    try:
        address = address_of(session.job)
        if address is None:
            raise NotAnswered
        answers = [_asked(session, session.job, address, subject) for subject in ("kernels", "terminals")]
    except (YardmasterError, NotReached, TooSlow, AnswerTooLarge, ValueError, RecursionError) as error:
        raise NotAnswered from error
    return used_until(answers[0], answers[1], now)


def _asked(session: WorkbenchSession, job: Job, address: Address, subject: str) -> Any:
    path = f"{session.prefix}api/{subject}"
    reply = dial(address, "GET", path, key=token_for(job), seconds=SECONDS, most=MOST_ANSWER)
    if reply.status == HTTPStatus.NOT_FOUND:
        return []  # it has no terminals at all
    if reply.status != HTTPStatus.OK:
        raise NotAnswered
    return json.loads(reply.body)
