"""`manage.py doctor`: what of this installation is not as it should be, with the remedy. Exit 0 where all is well.

First what settings tell (Django's system check), then what the object store does, then what engines must try: that
takes up to some minutes, and some pods on each cluster. Nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.management.base import BaseCommand, CommandError

from apps.jobs.engines.configured import engine_named, engine_names
from apps.jobs.engines.probes import try_now
from apps.stores import own_storage
from portal.apps import OF_DEPLOYMENT
from yardmaster.engines.base import Finding, KeepsHomes, Probe, Probes, Volumes
from yardmaster.errors import YardmasterError
from yardmaster.storage.trial import store_try


class Command(BaseCommand):
    help = "Says what of this installation is not as it should be, and tries what only a task on an engine can tell."

    def handle(self, **options: Any) -> None:
        wrong = 0
        for name, one in _findings():
            wrong += not one.is_well
            mark = "well " if one.is_well else "WRONG"
            self.stdout.write(f"{mark}  {name}: {one.message}")
            if one.remedy and not one.is_well:
                self.stdout.write(f"       {one.remedy}")
        if wrong:
            raise CommandError(f"{wrong} {'thing is' if wrong == 1 else 'things are'} not as it should be.")


def _findings() -> Iterator[tuple[str, Finding]]:
    """By what they are about, in the order in which they are found. What could not be determined counts as wrong."""
    problems = [one for one in checks.run_checks() if one.level >= checks.WARNING]
    warnings = checks.run_checks(tags=[OF_DEPLOYMENT], include_deployment_checks=True)
    for problem in (*problems, *warnings):
        yield "settings", Finding(False, f"{problem.msg} [{problem.id}]", problem.hint or "")
    if not problems and not warnings:
        yield "settings", Finding(True, "Nothing in them contradicts itself.")
    if not problems and own_storage().served() is None:
        for tried in store_try(own_storage(), settings.PUBLIC_URL):
            yield "object store", Finding(tried.is_well, tried.message, tried.remedy)
    for name in engine_names():
        for one in _of_engine(name):
            yield name, one


def _of_engine(name: str) -> Iterator[Finding]:
    try:
        engine = engine_named(name)
        engine.capacity()
    except YardmasterError as error:
        yield Finding(False, error.message, error.remedy)
        return
    yield Finding(True, "It answers.")
    if isinstance(engine, Probes):
        for probe in Probe:
            yield try_now(engine, probe)
    if isinstance(engine, Volumes) and engine.offers_volumes():
        yield from _checked("volumes", engine.check_volumes)
    if isinstance(engine, KeepsHomes):
        yield from _checked("homes of notebooks", engine.check_homes)


def _checked(what: str, check: Callable[[], Finding | None]) -> Iterator[Finding]:
    try:
        found = check()
    except YardmasterError as error:
        found = Finding(None, f"The engine could not check its {what}: {error.message}", error.remedy)
    if found is not None:
        yield found
