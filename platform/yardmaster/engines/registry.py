"""Engines by name, as the setting `YARDMASTER_ENGINES` lists them:

    {"local": {"class": "yardmaster.engines.local.LocalEngine", "options": {"root": …}}}

An engine is made when it is first asked for, once per process. Every mistake in the setting is `Misconfigured` with the
place where it stands (`components`). Not here: who may use which engine, and any engine.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from yardmaster.components import component_from
from yardmaster.engines.base import Engine
from yardmaster.errors import Misconfigured, YardmasterError

SETTING = "YARDMASTER_ENGINES"


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
    engine: Engine = component_from(
        f"{SETTING}[{name!r}]",
        config,
        what="engine",
        example="yardmaster.engines.local.LocalEngine",
        given={"name": name},
    )
    return engine
