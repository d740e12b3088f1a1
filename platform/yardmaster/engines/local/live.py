"""Which runs of a local engine's folder are alive, asked without a portal: for who stops it and asks what runs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from yardmaster.engines.local.engine import LocalEngine
from yardmaster.engines.supervision.facts import task_name
from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.errors import SpecUnreadable
from yardmaster.ids import JobKey


@dataclass(frozen=True)
class LiveRun:
    """A run of which something still runs or is going to."""

    name: str
    """The job's name, as its owner chose it."""
    key: JobKey
    folder: Path
    tasks: tuple[str, ...]
    """Those that have not ended: `worker-0`, …"""


def live_runs(root: Path | str) -> list[LiveRun]:
    """Oldest first. Starts nothing and changes nothing; a folder that is not there has no runs."""
    try:
        names = sorted(path.name for path in (Path(root).resolve() / "runs").iterdir() if not path.name.startswith("."))
    except FileNotFoundError:
        return []
    found = (_live_run(RunFolder(Path(root).resolve() / "runs" / name)) for name in names)
    return [run for run in found if run is not None]


def stop_all(root: Path | str, grace: timedelta) -> list[LiveRun]:
    """Stop every run that is alive, as `LocalEngine.stop` does; returns them. The portal learns of it when it looks."""
    engine, runs = LocalEngine(root), live_runs(root)
    for run in runs:
        engine.stop(run.key, grace)
    return runs


def _live_run(folder: RunFolder) -> LiveRun | None:
    order = None
    with contextlib.suppress(SpecUnreadable):  # damaged, or a newer release's: not ours to judge
        order = folder.read_order()
    if order is None:
        return None
    facts = {task_name(*task): folder.read_facts(*task) for task in folder.tasks()}
    open_tasks = tuple(name for name, one in facts.items() if not one.state.phase.is_ended)
    leaders = [one.leader for one in facts.values() if one.leader is not None]
    is_alive = folder.supervisor() is not None or any(leader.is_alive() for leader in leaders)
    return LiveRun(order.spec.name, order.key, folder.path, open_tasks) if open_tasks and is_alive else None
