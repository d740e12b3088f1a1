"""An extension of IPython, loaded in the kernels of a session: one notebook at a time has executors of a registered
Spark cluster. Each is an application there, with as many executors as the session may have; two would exceed it.

A notebook has the turn from its `SparkContext` to `stop`, or until its kernel ends. Programs in terminals are not kept
from it.
"""

from __future__ import annotations

import fcntl
import functools
import os
from types import ModuleType
from typing import Any, BinaryIO, Dict, Optional, Sequence

from yardmaster_runner.in_script import after_import

LOCK, CLUSTER = "YARDMASTER_SPARK_TURN", "YARDMASTER_SPARK_NAME"
MODULE = "pyspark.core.context"
_LOCAL = "local"


def variables(path: str, cluster: str) -> Dict[str, str]:
    """What kernels are told: the file that who has the turn has locked."""
    return {LOCK: path, CLUSTER: cluster}


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython, which asks for this name."""
    if os.environ.get(LOCK):
        after_import.change(MODULE, Turn(os.environ[LOCK], os.environ.get(CLUSTER, "")).keep)


class Turn:
    """That of this process."""

    def __init__(self, path: str, cluster: str) -> None:
        self._path, self._cluster = path, cluster
        self._file: Optional[BinaryIO] = None

    def take(self) -> None:
        """Raises RuntimeError where another notebook has it."""
        if self._file is not None:
            return
        file = open(self._path, "ab")  # noqa: SIM115 - open for as long as this notebook has the turn
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            message = (
                "Another notebook of this session uses the Spark cluster %s; one at a time may. Call spark.stop() "
                "there, or shut its kernel down, and run this cell again."
            )
            raise RuntimeError(message % self._cluster) from None
        self._file = file

    def give_back(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            fcntl.flock(file, fcntl.LOCK_UN)  # also for processes that were forked meanwhile
            file.close()

    def keep(self, module: ModuleType) -> None:
        """Have contexts of this module take it, and give it back. One within the notebook's own process needs none."""
        kind: Any = module.SparkContext
        begin, stop = kind.__init__, kind.stop

        @functools.wraps(begin)
        def begun(context: Any, *given: Any, **named: Any) -> None:
            if not _is_local(given, named):
                self.take()
            try:
                begin(context, *given, **named)
            except BaseException:
                self.give_back()
                raise

        @functools.wraps(stop)
        def stopped(context: Any) -> None:
            stop(context)
            self.give_back()

        kind.__init__, kind.stop = begun, stopped


def _is_local(given: Sequence[Any], named: Dict[str, Any]) -> bool:
    """Whether a context is made with a master in its own process."""
    conf = named.get("conf")
    master = (given[0] if given else named.get("master")) or (conf.get("spark.master", "") if conf is not None else "")
    return str(master or "").startswith(_LOCAL)
