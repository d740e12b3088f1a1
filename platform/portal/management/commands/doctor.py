"""`manage.py doctor`: what of this installation is not as it should be, with the remedy. Exit 0 where all is well.

First what settings tell (Django's system check), then what engines must try: that takes up to some minutes, and a pod
on each cluster. Nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core import checks
from django.core.management.base import BaseCommand, CommandError

from apps.jobs.engines import engine_named, engine_names
from apps.namespaces.models import Place
from yardmaster.engines.base import Examined, Examines
from yardmaster.errors import YardmasterError


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


def _findings() -> Iterator[tuple[str, Examined]]:
    """By what they are about, in the order in which they are found."""
    problems = [one for one in checks.run_checks() if one.level >= checks.WARNING]
    for problem in problems:
        yield "settings", Examined(False, problem.msg, problem.hint or "")
    if not problems:
        yield "settings", Examined(True, "Nothing in them contradicts itself.")
    for name in engine_names():
        for one in _of_engine(name):
            yield name, one


def _of_engine(name: str) -> list[Examined]:
    try:
        engine = engine_named(name)
        engine.capacity()
    except YardmasterError as error:
        return [Examined(False, error.message, error.remedy)]
    found = [Examined(True, "It answers.")]
    if isinstance(engine, Examines):
        place = Place.objects.filter(engine=name, goes=False, shaped_at__isnull=False).order_by("pk").first()
        if place is None:
            message = "No namespace is on it yet, so that nothing can be tried there."
            return [*found, Examined(False, message, "Wait until the portal has made them, or see what it logs.")]
        found += engine.examine(place.namespace_id)
    return found
