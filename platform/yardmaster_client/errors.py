"""What can go wrong between a program and the portal."""

from __future__ import annotations

import re
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

    def at(self, path: str) -> PortalError:
        """The same with the file that it is about."""
        if path in self.detail:
            return self
        detail = f"{path}: {self.detail}"
        return PortalError(self.status, self.code, detail, self.remedy, self.errors, self.facts)


_STORE_CODE = re.compile(r"<Code>([\w.-]{1,60})</Code>")
_STORE_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_STORE_IS_FULL = {"XMinioStorageFull", "StorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded"}


def store_error(status: int, body: object) -> PortalError:
    """What an object store has answered at a signed address: the portal's own as problem+json, others as S3's XML."""
    found = _STORE_CODE.search(body) if isinstance(body, str) else None
    if found is None:
        return PortalError.from_answer(status, body)
    code, said = found[1], _STORE_MESSAGE.search(str(body))
    if code in _STORE_IS_FULL or status == 507:
        remedy = (
            "Delete data that you no longer need, or ask an administrator for more storage; then repeat the command."
        )
        return PortalError(status, "storage_full", "The object store is full.", remedy)
    if code == "NoSuchKey":
        return PortalError(status, "object_missing", "This file is no longer in the object store.")
    words = f": {said[1]}" if said else ""
    return PortalError(status, f"store_{code}", f"The object store answered {status} {code}{words}")


class NotReachable(Exception):
    """There is no answer at the portal's address, or the connection broke and could not be made again."""


class NotSignedIn(LookupError):
    """There is neither a stored sign-in nor one in the environment."""
