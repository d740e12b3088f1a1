"""What executors print, brought into the log of their task: Spark writes it to files, one folder for each executor."""

from __future__ import annotations

import glob
import os
from typing import Callable, Dict

PIECE = 1 << 20


class ExecutorLogs:
    """Hands on what has been added to the files below `folder` since the last `read`. `write` gets bytes that end with
    a line, but for the last ones of a file."""

    def __init__(self, folder: str, write: Callable[[bytes], None]) -> None:
        self._folder = folder
        self._write = write
        self._read: Dict[str, int] = {}

    def read(self, is_last: bool = False) -> int:
        """How many bytes were handed on. `is_last`: also a line that was not ended."""
        count = 0
        for path in sorted(glob.glob(os.path.join(self._folder, "*", "*", "std*"))):
            if os.path.basename(path) in ("stdout", "stderr"):
                count += self._from(path, is_last)
        return count

    def _from(self, path: str, is_last: bool) -> int:
        at = begun = self._read.get(path, 0)
        try:
            with open(path, "rb") as file:
                file.seek(at)
                while True:
                    piece = file.read(PIECE)
                    whole = piece if is_last or len(piece) == PIECE else piece[: piece.rfind(b"\n") + 1]
                    if whole:
                        self._write(whole)
                        at = self._read[path] = at + len(whole)
                    if len(piece) < PIECE:
                        break
        except OSError:
            pass  # removed meanwhile
        return at - begun
