"""Reading JSON that people wrote: every problem is collected, and something harmless stands in for what could not be
read, so that the rest can be judged too. A key that is not known where it stands is refused by name.

Not here: what a job specification has (`spec_json`) and which values are valid (`spec_rules`).
"""

from __future__ import annotations

import difflib
import re
import uuid
from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten
from yardmaster.quantity import NotAQuantity

MOST_PROBLEMS = 100
"""More are counted, not listed: an absurd input must not make an absurd answer."""
HUGE = 10**15
NO_ID = uuid.UUID(int=0)
_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ABSENT = object()

Word = TypeVar("Word", bound=StrEnum)
Amount = TypeVar("Amount", int, float)


def show(value: object) -> str:
    """Any value, shortened for a message. Never walks into it, so that its depth and size do not matter."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value) if abs(value) < HUGE else "a huge number"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"an object with {len(value)} keys"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return f"a {type(value).__name__}"


class Reading:
    """One reading. `levels` are the keys that are known at each level, by its name in words."""

    def __init__(self, levels: Mapping[str, tuple[str, ...]]) -> None:
        self.problems: list[Problem] = []
        self.unread: list[str] = []
        self._levels = levels

    def is_read(self, field: str) -> bool:
        """Whether what stands at this field, and within and around it, is what was written."""
        return not any(_is_within(field, one) or _is_within(one, field) for one in self.unread)

    # Each of these returns a stand-in after it has noted the problem.

    def keys(
        self, field: str, value: object, known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> dict[str, object]:
        """The known keys of an object."""
        if not isinstance(value, Mapping):
            self.unreadable(
                field, "wrong_type", "Expected an object.", f"Write an object with {_any_of(known)}.", value
            )
            return {}
        prefix = f"{field}." if field else ""
        unknown = [key for key in value if not isinstance(key, str) or key not in known]
        for key in unknown[:MOST_PROBLEMS]:
            message = f"{show(key)} is not a known field."
            self.refuse(f"{prefix}{show(key)}", "unknown_key", message, self._hint(key, known), value[key], secret=True)
        for key in required:
            if key not in value:
                self.unreadable(f"{prefix}{key}", "missing", f"{key} is required.", f"Add {key}.")
        return {key: value[key] for key in known if key in value}

    def mapping(self, field: str, value: object, most: int) -> dict[str, object]:
        """An object whose keys are free."""
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            self.unreadable(field, "wrong_type", "Expected an object with text keys.", 'Write {"name": …}.', value)
            return {}
        return dict(value) if self._is_short(field, value, most) else {}

    def items(self, field: str, value: object, most: int) -> Sequence[object]:
        if not isinstance(value, (list, tuple)):
            self.unreadable(field, "wrong_type", "Expected a list.", "Write a list: […].", value)
            return ()
        return value if self._is_short(field, value, most) else ()

    def _is_short(self, field: str, value: Sized, most: int) -> bool:
        if len(value) > most:
            self.unreadable(field, "too_long", f"{field} has at most {most} entries.", "Use fewer.", value)
        return len(value) <= most

    def texts(self, field: str, value: object, most: int) -> list[str]:
        return [self.text(f"{field}.{index}", one) for index, one in enumerate(self.items(field, value, most))]

    def text(self, field: str, value: object, *, secret: bool = False) -> str:
        if isinstance(value, str):
            return value
        remedy = f'Put it in quotes: "{show(value)}".' if isinstance(value, (int, float)) and not secret else ""
        self.unreadable(
            field, "wrong_type", "Expected a text.", remedy or "Write a text in quotes.", value, secret=secret
        )
        return ""

    def whole(self, field: str, value: object, stand_in: int = 0) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            if abs(value) < HUGE:
                return value
            self.unreadable(field, "out_of_range", "The number is too large.", "Write a smaller one.", value)
        else:
            self.unreadable(field, "wrong_type", "Expected a whole number.", "Write digits without quotes.", value)
        return stand_in

    def truth(self, field: str, value: object) -> bool:
        if not isinstance(value, bool):
            self.unreadable(field, "wrong_type", "Expected true or false.", "Write it without quotes.", value)
        return value is True

    def duration(self, field: str, value: object) -> timedelta:
        # Clamped so that timedelta can hold it; where the bounds are is the rules' matter.
        seconds = self.whole(field, value)
        return timedelta(seconds=max(-(10**9), min(seconds, 10**9)))

    def quantity(self, field: str, value: object, parse: Callable[[object], Amount], stand_in: Amount) -> Amount:
        try:
            return parse(value)
        except NotAQuantity as error:
            self.unreadable(field, "wrong_type", str(error), "Correct the amount.", value)
            return stand_in

    def word(self, field: str, value: object, words: type[Word], stand_in: Word) -> Word:
        known = tuple(one.value for one in words)
        if isinstance(value, str) and value in known:
            return words(value)
        self.unreadable(
            field, "bad_value", f"Expected {_any_of(known)}.", _nearest(value, known) or "Choose one.", value
        )
        return stand_in

    def id(self, field: str, value: object) -> uuid.UUID:
        if isinstance(value, str) and _ID.fullmatch(value):
            return uuid.UUID(value)
        if isinstance(value, str) and value.startswith("git+"):
            remedy = "POST the address to /api/v1/code-imports/, and name the code_version that comes of it."
            self.unreadable(field, "git_first", "Code from Git is fetched before the launch.", remedy, value)
            return NO_ID
        message = "Expected an ID such as 0193e5a4-7c1b-7abc-8def-0123456789ab."
        self.unreadable(field, "bad_value", message, "Choose a version, or copy its ID from its page.", value)
        return NO_ID

    def unreadable(
        self, field: str, code: str, message: str, remedy: str, value: object = _ABSENT, *, secret: bool = False
    ) -> None:
        self.unread.append(field)
        self.refuse(field, code, message, remedy, value, secret=secret)

    def refuse(
        self, field: str, code: str, message: str, remedy: str, value: object = _ABSENT, *, secret: bool = False
    ) -> None:
        shown = "" if value is _ABSENT or (secret and isinstance(value, str)) else show(value)
        self.problems.append(Problem(field, code, message, remedy, shown))

    def _hint(self, key: object, known: tuple[str, ...]) -> str:
        """What to do about an unknown key: the level where it belongs, else the near miss, else what is known here."""
        level = next((level for level, names in self._levels.items() if key in names), None)
        return f"It belongs to {level}." if level else _nearest(key, known) or f"Known here: {', '.join(known)}."


def _is_within(field: str, outer: str) -> bool:
    return not outer or field == outer or field.startswith(f"{outer}.")


def _any_of(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _nearest(value: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(value.lower(), known, 1) if isinstance(value, str) and len(value) <= 64 else []
    return f"Did you mean {near[0]}?" if near else ""
