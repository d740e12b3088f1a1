"""The address that TensorFlowOnSpark gives the nodes of its clusters, in every Python of a Spark job.

The library takes the address of the way to the Internet. A task may listen on the address alone by which the others of
its job know it, so that one is given instead. Nothing else of the library is changed.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Optional, Sequence

VARIABLE = "YARDMASTER_SPARK_HOST"
MODULE = "tensorflowonspark.util"


class _Loader(importlib.abc.Loader):
    """Runs the module as its own loader does, and then puts the address in."""

    def __init__(self, own: Any, host: str) -> None:
        self._own, self._host = own, host

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        found: Optional[ModuleType] = self._own.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        module.get_ip_address = lambda: self._host  # type: ignore[attr-defined]


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, host: str) -> None:
        self._host = host

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name != MODULE:
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path)
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader, self._host)
        return found


def install(host: str) -> None:
    """To be called once, before the library is imported."""
    sys.meta_path.insert(0, _Finder(host))
