"""Lines that tasks have not finished, such as progress bars, below a log that is followed: one line of the terminal,
which the next one overwrites. Nothing of it reaches a file or a pipe.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from yardmaster_client.cli.output import visible
from yardmaster_client.follow import OpenLine

_BEGINNING, _ERASE = "\r", "\x1b[2K"


class OpenLines:
    """The newest unfinished line, as the last line of `console`. To be cleared before anything else is printed."""

    def __init__(self, console: Console, *, with_task: bool) -> None:
        self._console = console
        self._with_task = with_task
        self._is_shown = False

    def show(self, line: OpenLine) -> None:
        """In place of the one shown before; an empty one leaves nothing."""
        self.clear()
        if not self._console.is_terminal or not line.text:
            return
        task = f"{line.role}-{line.index}: " if self._with_task else ""
        text = Text(visible(task + Text.from_ansi(line.text).plain), style="dim")
        text.truncate(max(1, self._console.width - 1))
        self._console.print(text, end="")
        self._console.file.flush()
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            self._console.file.write(_BEGINNING + _ERASE)
            self._is_shown = False
