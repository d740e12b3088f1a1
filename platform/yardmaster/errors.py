"""Every error the core raises: typed, with a stable code for programs and a sentence for people.

Two questions decide what a caller does with one: whose is it (the user's, the platform's), and may the same call
succeed later (`retryable`). Not here: HTTP statuses (the API's matter) and a job's verdict (`failures`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing wrong with what a user sent.

    `field` is a dotted path into the input (`roles.worker.memory`), empty for the whole; `value` is what stood there,
    shortened for display; `remedy` is one sentence that says what to do.
    """

    field: str
    code: str
    message: str
    remedy: str = ""
    value: str = ""


class YardmasterError(Exception):
    """Base of all. `code` never changes once released; `retryable` says whether the same call may succeed later."""

    code = "error"
    retryable = False

    def __init__(self, message: str, *, code: str | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        if code is not None:
            self.code = code


class SpecRejected(YardmasterError):
    """The user's specification can never run as it is. Final. Carries every problem found, not only the first."""

    code = "spec_rejected"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in self.problems))


class SpecUnreadable(YardmasterError):
    """What was stored as a job's specification is none. No request is at fault: the row was damaged, or a newer
    release wrote it."""

    code = "spec_unreadable"


class QuotaFull(YardmasterError):
    """There is no capacity now. Retry later."""

    code = "quota_full"
    retryable = True


class Unavailable(YardmasterError):
    """Something outside did not answer (engine, store, broker). Retry later."""

    code = "unavailable"
    retryable = True


class EngineNamespaceMissing(Unavailable):
    """An engine does not have (any more) what it keeps for a namespace. It is made first, by the caller that knows
    whether the namespace is to be there."""


class Misconfigured(YardmasterError):
    """The operator's: no retry helps until a setting is changed. The message names the setting."""

    code = "misconfigured"
