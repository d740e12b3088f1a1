"""What admission says of one job: the one shape of it, from there to the job's row, the API and the pages."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from yardmaster.job.spec import Role
from yardmaster.queueing.ledger import Code, Holder
from yardmaster.queueing.pools import Shortage
from yardmaster.queueing.shares import ShareOf

MOST_SHOWN = 20
"""Jobs ahead, and holders, that an answer names: no reader wants more. All that are ahead are counted."""


class Fit(StrEnum):
    """What becomes of the job."""

    FITS_NOW = "fits_now"
    """It starts: what it asks for is reserved in the same transaction."""
    WAITS = "waits"
    NEVER_FITS = "never_fits"
    """As limits and machines are now, it can never start, however long it waits."""


@dataclass(frozen=True)
class Decision:
    """Ids are for programs: what shows them hides those that the reader may not see."""

    fit: Fit
    code: Code | None = None
    """None where it fits now."""
    message: str = ""
    remedy: str = ""
    numbers: tuple[Shortage, ...] = ()
    position: int = 0
    """How many jobs of the engine's queue are before it."""
    ahead: tuple[uuid.UUID, ...] = ()
    """Those of them that want what it waits for, first first: the first few of `ahead_count`."""
    ahead_count: int = 0
    holders: tuple[Holder, ...] = ()
    """Admitted jobs that hold what it waits for, the first few."""
    share: ShareOf | None = None
    """Where jobs of others are before it because its namespace, or a group above that, has more than its share."""
    largest_fit: Mapping[Role, int] | None = None
    """The largest shape of the job that would start now, where that was asked (`fitting`); None: there is none."""
