"""Changing a module of a library once it is imported, whenever that is."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, Optional, Sequence

Change = Callable[[ModuleType], None]


def change(name: str, then: Change) -> None:
    """Call `then` with the module of this name: now where it is imported already, else when it is."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, then))


class _Loader(importlib.abc.Loader):
    """Runs the module as its own loader does, and then changes it."""

    def __init__(self, own: Any, then: Change) -> None:
        self._own, self._then = own, then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        found: Optional[ModuleType] = self._own.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        self._then(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, then: Change) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name != self._name:
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path)
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader, self._then)
        return found
