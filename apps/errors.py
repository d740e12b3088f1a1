"""Why a request cannot be done: errors that services, selectors and models raise. Each has a stable code for programs
and a sentence for people.

They know nothing of HTTP: `apps.api.problems` says which status each one means. Not here: what the core raises
(`yardmaster.errors`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from yardmaster.errors import Problem, Unavailable, YardmasterError


class DomainError(Exception):
    """Base of all. `errors` names every field at fault, `facts` are further members of the answer for programs."""

    code = "error"

    def __init__(
        self, detail: str, code: str | None = None, *, remedy: str = "", errors: Iterable[Problem] = ()
    ) -> None:
        super().__init__(detail)
        self.code = code or self.code
        self.detail = detail
        self.remedy = remedy
        self.errors = tuple(errors)
        self.facts: Mapping[str, Any] = {}


class NotFound(DomainError):
    """There is no such thing, or none that the caller may know of: both read the same."""

    code = "not_found"

    def __init__(
        self, detail: str = "The object does not exist, or is not visible to you.", code: str | None = None, *,
        remedy: str = "",
    ) -> None:  # fmt: skip
        super().__init__(detail, code, remedy=remedy)


class Conflict(DomainError):
    """The request is valid, but not in the present state."""

    code = "conflict"


class QuotaExceeded(Conflict):
    """It does not fit into the namespace's quota now."""

    code = "quota_full"


class Gone(DomainError):
    """It was there and has been deleted. A client that still writes to it must stop."""

    code = "job_gone"


class Invalid(DomainError):
    """What was sent is not valid."""

    code = "invalid"

    def __init__(self, errors: Iterable[Problem], detail: str = "") -> None:
        errors = tuple(errors)
        super().__init__(detail or _summary(errors), errors=errors)


class Unprocessable(DomainError):
    """What was sent is well formed, but cannot be used. Each use has a code of its own."""


class Forbidden(DomainError):
    """The caller may see the thing, but may not do this."""

    code = "permission_denied"

    def __init__(self, detail: str, remedy: str = "", code: str | None = None) -> None:
        super().__init__(detail, code, remedy=remedy)


class TooLarge(DomainError):
    """More bytes than are taken."""

    code = "too_large"


class TooMany(DomainError):
    """More than this caller may do now. `wait`: seconds after which the same may succeed."""

    def __init__(self, detail: str, code: str, *, wait: int) -> None:
        super().__init__(detail, code, remedy=f"Try again in {wait} {'second' if wait == 1 else 'seconds'}.")
        self.wait = wait


_KINDS: tuple[type[DomainError] | type[Unavailable], ...] = (
    NotFound, QuotaExceeded, Conflict, Gone, Unprocessable, TooLarge, Unavailable,
)  # fmt: skip
"""What is kept with what it happened to; the special before the general."""


def words_of(error: DomainError | YardmasterError) -> str:
    """What is wrong and what to do about it, for people."""
    return f"{_detail_of(error)} {error.remedy}".strip()


def _detail_of(error: DomainError | YardmasterError) -> str:
    return error.detail if isinstance(error, DomainError) else error.message


def error_to_json(error: DomainError | YardmasterError) -> dict[str, Any]:
    """The error as JSON, to be kept with what it happened to. One of another kind is kept as `Unprocessable`."""
    return {
        "kind": next((kind.__name__ for kind in _KINDS if isinstance(error, kind)), Unprocessable.__name__),
        "code": error.code,
        "detail": _detail_of(error),
        "remedy": error.remedy,
        "errors": [asdict(one) for one in getattr(error, "errors", ())],
    }


def error_from_json(kept: Mapping[str, Any]) -> DomainError | Unavailable:
    """The error that `error_to_json` wrote."""
    kind = next((kind for kind in _KINDS if kind.__name__ == kept.get("kind")), Conflict)
    error = kind(kept["detail"], code=kept["code"], remedy=kept["remedy"])
    if isinstance(error, DomainError):
        error.errors = tuple(Problem(**one) for one in kept["errors"])
    return error


def _summary(errors: tuple[Problem, ...]) -> str:
    return "; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in errors) or "The request is not valid."
