"""Tables that are compressed with gzip, as files that can be read from any byte on."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import weakref
import zlib
from typing import Dict

from yardmaster_runner.prepare.trouble import PrepareError

AT_ONCE = 1 << 20


class Unpacked:
    """What is unpacked lies in a temporary folder as long as this exists."""

    def __init__(self) -> None:
        self.folder = ""
        self.paths: Dict[str, str] = {}

    def path(self, path: str, shown: str) -> str:
        """Where to read a table. One that is not compressed is read where it is. Raises `PrepareError`."""
        if not shown.lower().endswith(".gz"):
            return path
        if shown not in self.paths:
            if not self.folder:
                self.folder = tempfile.mkdtemp(prefix="unpacked-")
                weakref.finalize(self, shutil.rmtree, self.folder, True)
            target = os.path.join(self.folder, str(len(self.paths)))
            _unpack(path, target, shown)
            self.paths[shown] = target
        return self.paths[shown]


def _unpack(path: str, target: str, shown: str) -> None:
    try:
        with gzip.open(path, "rb") as packed, open(target, "wb") as out:
            shutil.copyfileobj(packed, out, AT_ONCE)
    except (EOFError, zlib.error) as error:
        raise PrepareError("%s: damaged or cut off: %s" % (shown, error)) from None
    except OSError as error:
        raise PrepareError("%s: it cannot be unpacked: %s" % (shown, error)) from None
