"""What can go wrong between a program and the portal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


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
        self, status: int, code: str, detail: str, remedy: str = "", errors: Sequence[FieldError] = ()
    ) -> None:
        super().__init__(detail or code)
        self.status, self.code, self.detail, self.remedy, self.errors = status, code, detail, remedy, tuple(errors)

    @classmethod
    def from_answer(cls, status: int, body: object) -> PortalError:
        """From problem+json, or from whatever a proxy in between has answered."""
        if not isinstance(body, dict):
            return cls(status, f"http_{status}", f"The portal answered {status}.")
        rows: list[Any] = body.get("errors") or []
        names = FieldError.__dataclass_fields__
        errors = [FieldError(**{k: str(v) for k, v in row.items() if k in names}) for row in rows]
        return cls(status, str(body.get("code", "")), str(body.get("detail", "")), str(body.get("remedy", "")), errors)


class NotReachable(Exception):
    """Nobody answers at the portal's address, or the connection broke and could not be made again."""


class NotSignedIn(LookupError):
    """There is neither a stored sign-in nor one in the environment."""
