"""The engine `hosts`: a job's tasks are processes of several machines, which the portal reaches by SSH alone.

On each machine an agent (`agent`) has the verbs of one machine's runs (`engines.supervision`); its supervisors keep the
runs, with or without the portal. The portal decides which task runs where, puts together what the machines say, and
tells each what has come of the others. Names are looked up late: an agent needs nothing that is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yardmaster.engines.hosts.engine import HostsEngine

__all__ = ["HostsEngine"]


def __getattr__(name: str) -> Any:
    if name == "HostsEngine":
        from yardmaster.engines.hosts.engine import HostsEngine

        return HostsEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
