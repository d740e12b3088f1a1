"""What executors print, brought into the log of their task: it is in files, in one folder for each executor. They write
these themselves (`executor_java`), or Spark does, which begins its own with the command line of the executor.
"""

from __future__ import annotations

import glob
import os
from typing import Callable, Dict

from yardmaster_runner.spark.executor_java import ERR, OUT

PIECE = 1 << 20
_OF_SPARK = "stderr"
_NAMES = (OUT, ERR, "stdout", _OF_SPARK)
_COMMAND, _COMMAND_ENDS = b"Spark Executor Command: ", b"\n\n"


class ExecutorLogs:
    """Hands on what has been added to the files below `folder` since the last `read`. `write` gets whole lines, but
    for those that are longer than `PIECE`."""

    def __init__(self, folder: str, write: Callable[[bytes], None]) -> None:
        self._folder = folder
        self._write = write
        self._read: Dict[str, int] = {}

    def read(self, is_last: bool = False) -> int:
        """How many bytes were handed on. `is_last`: also a line that was not ended."""
        paths = [path for name in _NAMES for path in glob.glob(os.path.join(self._folder, "*", "*", name))]
        return sum(self._from(path, is_last) for path in sorted(paths))

    def _from(self, path: str, is_last: bool) -> int:
        count = 0
        try:
            with open(path, "rb") as file:
                at = self._read.get(path, 0)
                if at == 0 and os.path.basename(path) == _OF_SPARK:
                    at = _past_command(file.read(PIECE))
                file.seek(at)
                while True:
                    piece = file.read(PIECE)
                    whole = piece if is_last or len(piece) == PIECE else piece[: piece.rfind(b"\n") + 1]
                    if whole:
                        is_cut = len(piece) < PIECE and not whole.endswith(b"\n")
                        self._write(whole + b"\n" * is_cut)  # so that the next file does not continue the line
                        count += len(whole)
                        self._read[path] = at + count
                    if len(piece) < PIECE:
                        break
        except OSError:
            pass  # removed meanwhile
        return count


def _past_command(begins: bytes) -> int:
    """Where what the executor has printed begins in a file of Spark's that begins so."""
    if not begins.startswith(_COMMAND):
        return 0
    end = begins.find(_COMMAND_ENDS)
    return len(begins) if end < 0 else end + len(_COMMAND_ENDS)
