"""Removing the logs of attempts that are over, while their job stays and may write the log of a later attempt.

Not here: removing a job's log for good, after which nothing is taken any more (`LogStore.delete_job`).
"""

from __future__ import annotations

import contextlib
import shutil
import uuid

from yardmaster.errors import Unavailable
from yardmaster.ids import short
from yardmaster.logs.leftovers import expired, expired_place
from yardmaster.logs.store import LogStore


def attempts_delete(store: LogStore, job_id: uuid.UUID, last: int) -> None:
    """Remove every stream of the attempts up to `last`. Absent: success. What an earlier, interrupted call left is
    removed too. Raises `Unavailable`."""
    name = short(job_id)
    try:
        place = expired_place(store.root, name)  # first: it may find what an older version left of this job
        with contextlib.suppress(FileNotFoundError):
            for one in list((store.root / name).iterdir()):
                if one.name.isdecimal() and int(one.name) <= last:
                    with contextlib.suppress(FileNotFoundError):
                        # Under its new name no reader finds it any more, so nothing is seen half-removed.
                        one.rename(place.with_name(f"{place.name}-{one.name}"))
        for leftover in expired(store.root, name):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(leftover)
    except OSError as error:
        raise Unavailable(f"The logs of the job cannot be removed: {error.strerror}.") from error
