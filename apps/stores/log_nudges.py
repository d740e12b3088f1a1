"""Tell the followers of a log that lines have come. A lost nudge costs them a second: they poll, too.

Not here: how nudges are sent (`apps.api.nudging`), and listening to them (`tails`).
"""

from __future__ import annotations

import uuid

from apps.api.nudging import Nudger, tell
from yardmaster.job.spec import Role


def group_of(job_id: uuid.UUID) -> str:
    """The Channels group of all followers of a job's logs."""
    return f"logs.{job_id.hex}"


def log_moved(job_id: uuid.UUID, role: Role, index: int, next_line: int) -> None:
    """Nudge the followers of this stream soon. Returns at once and never raises."""
    _nudger.add((job_id, role, index), next_line)


async def _send(moved: dict[tuple[uuid.UUID, Role, int], int]) -> None:
    for (job_id, role, index), next_line in moved.items():
        message = {"type": "log.moved", "role": role.value, "index": index, "next_line": next_line}
        await tell(group_of(job_id), message)


_nudger = Nudger("logs", _send)
