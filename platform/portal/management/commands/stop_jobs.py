"""`manage.py stop_jobs` (`make stop-jobs`): end every job of this machine, whether the portal runs or not.

First the database learns that the jobs are to stop, then the local engine ends their tasks: a portal that runs, or the
next one that starts, finds a job that ended as it was told to and shows it as STOPPED. Where the database does not
answer, the tasks are ended all the same.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from apps.jobs.engines.configured import engine_named, engine_names
from apps.jobs.services import jobs_stop_all
from yardmaster.engines.local import LiveRun, LocalEngine, live_runs, stop_all
from yardmaster.errors import YardmasterError

_MARGIN = 10.0
"""Seconds beyond the grace until a run that is still there is reported."""


class Command(BaseCommand):
    help = "Ends every job of the local engine, with or without a running portal."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--grace", type=float, default=30.0, help="seconds between SIGTERM and SIGKILL (30)")

    def handle(self, **options: Any) -> None:
        grace = timedelta(seconds=max(0.0, options["grace"]))
        engines = self._local_engines()
        self._want_stopped(engines)
        runs = [run for engine in engines.values() for run in stop_all(engine.root, grace)]
        for run in runs:
            self.stdout.write(f"stopping  {run.name}  ({', '.join(run.tasks)})")
        left = _wait(engines, grace.total_seconds() + _MARGIN)
        if left:
            raise CommandError(f"{len(left)} of {len(runs)} runs have not ended: {', '.join(run.name for run in left)}")
        self.stdout.write(f"{len(runs)} run(s) ended." if runs else "No job runs on this machine.")

    def _local_engines(self) -> dict[str, LocalEngine]:
        """Those of the settings that run jobs here. One that cannot be made is named and left out."""
        found: dict[str, LocalEngine] = {}
        for name in engine_names():
            try:
                engine = engine_named(name)
            except YardmasterError as error:
                self.stderr.write(f"The engine {name} is left out: {error}")
                continue
            if isinstance(engine, LocalEngine):
                found[name] = engine
        return found

    def _want_stopped(self, engines: dict[str, LocalEngine]) -> None:
        try:
            jobs = jobs_stop_all(engines=list(engines))
        except DatabaseError as error:
            self.stderr.write(f"The database does not answer, so the portal will call these jobs failed: {error}")
            return
        for job in jobs:
            self.stdout.write(f"no longer wanted  {job.name}  ({job.phase.lower()})")


def _wait(engines: dict[str, LocalEngine], seconds: float) -> list[LiveRun]:
    """What is still alive after that time at most."""
    deadline = time.monotonic() + seconds
    while True:
        left = [run for engine in engines.values() for run in live_runs(engine.root)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)
