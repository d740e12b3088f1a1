"""Engines by name, as the setting `YARDMASTER_ENGINES` lists them:

    {"local": {"class": "yardmaster.engines.local.LocalEngine", "options": {"root": …}}}

An engine is made when it is first asked for, once per process. Every mistake in the setting is `Misconfigured` with the
place where it stands. Not here: who may use which engine, and any engine.
"""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Mapping
from typing import Any

from yardmaster.engines.base import Engine
from yardmaster.errors import Misconfigured, YardmasterError

SETTING = "YARDMASTER_ENGINES"
_KEYS = frozenset({"class", "options"})


class EngineRegistry:
    """The engines of one setting. May be shared by threads."""

    def __init__(self, setting: Mapping[str, Any]) -> None:
        self._setting = setting
        self._made: dict[str, Engine] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._setting)

    def get(self, name: str) -> Engine:
        """The engine of this name, always the same one. Raises `Misconfigured`."""
        with self._lock:
            if name not in self._made:
                if name not in self._setting:
                    known = ", ".join(self._setting) or "none"
                    raise Misconfigured(f"There is no engine {name!r} in {SETTING}.", remedy=f"It has: {known}.")
                self._made[name] = engine_from(name, self._setting[name])
            return self._made[name]

    def problems(self) -> list[YardmasterError]:
        """What is wrong with the setting, one error per engine that cannot be made: for a system check."""
        found: list[YardmasterError] = []
        for name in self.names:
            try:
                self.get(name)
            except YardmasterError as error:
                found.append(error)
        return found


def engine_from(name: str, config: object) -> Engine:
    """Make one engine; it is called `name`. Raises `Misconfigured`."""
    place = f"{SETTING}[{name!r}]"
    if not isinstance(config, Mapping) or not isinstance(config.get("class"), str):
        raise Misconfigured(
            f"{place} is no engine.", remedy='Write {"class": "yardmaster.engines.local.LocalEngine", "options": {…}}.'
        )
    unknown = sorted(str(key) for key in config if key not in _KEYS)
    if unknown:
        raise Misconfigured(f"{place} has a key that means nothing: {unknown[0]}.", remedy="It has class and options.")
    options = config.get("options", {})
    if not isinstance(options, Mapping):
        raise Misconfigured(f"{place}['options'] is not a table of options.", remedy="Write name: value pairs.")
    make = _class_at(config["class"], f"{place}['class']")
    _check_options(make, options, f"{place}['options']")
    try:
        engine: Engine = make(**{"name": name, **options})
    except (TypeError, ValueError) as error:
        raise Misconfigured(f"{place}['options']: {error}", remedy="See the engine's own description.") from error
    return engine


def _class_at(path: str, place: str) -> type[Any]:
    module, _, attribute = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise Misconfigured(
            f"{place}: {path!r} cannot be imported: {error}", remedy="Write the dotted path of an engine's class."
        ) from error
    if not isinstance(found, type):
        raise Misconfigured(f"{place}: {path!r} is not a class.", remedy="Write the dotted path of an engine's class.")
    return found


def _check_options(make: type[Any], options: Mapping[str, Any], place: str) -> None:
    """Refuse options that the class does not have, and the lack of those that it must have, by name."""
    parameters = inspect.signature(make).parameters
    known = [name for name in parameters if name != "name"]
    for option in options:
        if option not in known:
            raise Misconfigured(f"{place}[{option!r}] is no option of {make.__name__}.", remedy=f"It has: {known}.")
    for name in known:
        if name not in options and parameters[name].default is inspect.Parameter.empty:
            raise Misconfigured(f"{place} lacks {name!r}, which {make.__name__} needs.", remedy=f"Set {name!r}.")
