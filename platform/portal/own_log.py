"""What the portal writes into its own log of what strangers send: few lines, each short and on one line.

Pure: the clock is given. Not here: which records are a client's fault, and writing (`portal.client_errors`).
"""

from __future__ import annotations

import re

CUT = "…"
LONGEST_TEXT = 200
"""Characters of a text that a client chose."""
LONGEST_MESSAGE = 2_000
LONGEST_TRACEBACK = 32_768
MINUTE = 60.0
"""Seconds. Shorter in tests alone."""
_SECRET = re.compile(r"(/(?:invitation|unsubscribe|sign-in|accounts/address)/)[^/\s]+")


def without_secrets(text: str) -> str:
    """The text without what of a link in it lets one in."""
    return _SECRET.sub(rf"\1{CUT}", text)


def shown(text: str, most: int = LONGEST_TEXT) -> str:
    """The text on one line, cut: a client must not be able to write lines of its own, nor long ones."""
    text = text if len(text) <= most else text[: most - 1] + CUT
    return text if text.isprintable() else "".join(map(_visible, text))


def shortened(traceback: str, most: int = LONGEST_TRACEBACK) -> str:
    """A traceback of many lines; without its middle where it is too long: how it began and how it ended helps."""
    if len(traceback) <= most:
        return traceback
    half = most // 2
    return f"{traceback[:half]}\n{CUT} {len(traceback) - 2 * half} characters {CUT}\n{traceback[-half:]}"


class PerMinute:
    """Lets through the first `most` of each minute and counts the others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._began = float("-inf")
        self._passed = self._left_out = 0

    def admits(self, now: float) -> bool:
        """Whether this one is among the first of its minute."""
        if now - self._began >= MINUTE:
            self._began, self._passed = now, 0
        self._passed += 1
        if self._passed <= self._most:
            return True
        self._left_out += 1
        return False

    def ends_at(self) -> float:
        """When the minute is over that runs now."""
        return self._began + MINUTE

    def take_left_out(self) -> int:
        """How many were left out since this was last asked."""
        count, self._left_out = self._left_out, 0
        return count


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
