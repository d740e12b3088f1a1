"""The local engine: tasks are processes of this machine. `engine` has the verbs, `supervisor` does the work.

The verbs write files; one detached supervisor per run reads them, starts and ends processes, and writes what it sees.
Names are looked up late, so that a supervisor, which is started for every job, loads only what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yardmaster.engines.local.engine import LocalEngine
    from yardmaster.engines.local.live import LiveRun, live_runs, stop_all

__all__ = ["LiveRun", "LocalEngine", "live_runs", "stop_all"]


def __getattr__(name: str) -> Any:
    if name == "LocalEngine":
        from yardmaster.engines.local.engine import LocalEngine

        return LocalEngine
    if name in __all__:
        from yardmaster.engines.local import live

        return getattr(live, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
