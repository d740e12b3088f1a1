"""Why code was not fetched, as the process that fetches says it to the worker that waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Reason:
    """`field` is that of the request: `address`, `ref` or `folder`."""

    code: str
    message: str
    remedy: str
    value: str = ""
    field: str = "address"

    def as_json(self) -> dict[str, str]:
        return asdict(self)


class Refused(Exception):
    """The code is not fetched. `passes`: the same may succeed later."""

    def __init__(
        self, code: str, message: str, remedy: str, value: str = "", *, field: str = "address", passes: bool = False
    ) -> None:
        super().__init__(message)
        self.reason = Reason(code, message, remedy, value, field)
        self.passes = passes


_LONGEST = {"code": 60, "message": 1_000, "remedy": 1_000, "value": 300, "field": 20}


def reason_from(said: Mapping[str, Any]) -> Reason:
    """The reason in what a process wrote: texts, cut to what is shown."""
    return Reason(**{name: str(said.get(name, ""))[:most] for name, most in _LONGEST.items()})
