"""What can go wrong between a program and the portal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_OF_EVERY_PROBLEM = frozenset({"type", "title", "status", "code", "detail", "remedy", "errors"})


@dataclass(frozen=True)
class FieldError:
    """One field that the portal refused."""

    field: str
    code: str
    message: str
    remedy: str = ""
    value: str = ""


class PortalError(Exception):
    """The portal's refusal. `code` is stable and meant for programs; `remedy` says what to do."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        remedy: str = "",
        errors: Sequence[FieldError] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail or code)
        self.status, self.code, self.detail, self.remedy, self.errors = status, code, detail, remedy, tuple(errors)
        self.facts = dict(facts or {})
        """What some problems say beside that: of `never_fits` the `numbers` and the `largest_fit`."""

    @classmethod
    def from_answer(cls, status: int, body: object) -> PortalError:
        """From problem+json, or from whatever a proxy in between has answered."""
        if not isinstance(body, dict):
            return cls(status, f"http_{status}", f"The portal answered {status}.")
        rows: list[Any] = body.get("errors") or []
        names = FieldError.__dataclass_fields__
        errors = [FieldError(**{k: str(v) for k, v in row.items() if k in names}) for row in rows]
        facts = {key: value for key, value in body.items() if key not in _OF_EVERY_PROBLEM}
        code, detail, remedy = (str(body.get(key, "")) for key in ("code", "detail", "remedy"))
        return cls(status, code, detail, remedy, errors, facts)


class NotReachable(Exception):
    """There is no answer at the portal's address, or the connection broke and could not be made again."""


class NotSignedIn(LookupError):
    """There is neither a stored sign-in nor one in the environment."""
