"""Why a job failed, in words that help. A verdict has a stable reason, one sentence, and a remedy.

Not here: when a job has failed (`success`, `plan`). The table of reasons is the whole vocabulary: engines and the runner
use these words and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from yardmaster.spec import Role


class Blame(StrEnum):
    """Whose a failure is: the script's author, the platform's, or a limit that somebody set."""

    USER = "user"
    PLATFORM = "platform"
    LIMIT = "limit"


@dataclass(frozen=True)
class Verdict:
    """Why the job ended as it did. `role`/`index` name the task that decided it, where one did."""

    reason: str
    message: str
    remedy: str = ""
    blame: Blame = Blame.USER
    role: Role | None = None
    index: int | None = None
    exit_code: int | None = None
