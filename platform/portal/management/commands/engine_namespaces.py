"""`manage.py engine_namespaces`: list or remove what engines keep for this portal's namespaces. For operators who leave
a cluster, and for the demonstration, which leaves nothing there.

Prints one line of JSON, `{"kubernetes": ["<namespace id>", …]}`. With `--remove` they are removed first, except
those named by `--keep`, and what is printed is what is still there; jobs in them end with them. No portal may run
meanwhile: it would make them again.
"""

import json
import time
import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.jobs.engines.configured import engine_named, engine_names
from apps.jobs.engines.namespaces import engine_namespace_lost
from yardmaster.engines.base import ListsNamespaces, Remains
from yardmaster.errors import YardmasterError

_LOOK_EVERY = 0.5


class Command(BaseCommand):
    help = "Lists what engines keep for the portal's namespaces, or removes it."
    requires_system_checks = ()
    """It starts no portal: at which address one would be reached is no matter of it."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--remove", action="store_true", help="remove them; no portal may run meanwhile")
        parser.add_argument("--keep", default="", help="ids of namespaces to keep, separated by commas")
        parser.add_argument("--patience", type=float, default=90.0, help="seconds to wait until they are gone")

    def handle(self, **options: Any) -> None:
        keep = {uuid.UUID(one) for one in options["keep"].split(",") if one}
        found = {}
        for name in engine_names():
            try:
                engine = engine_named(name)
            except YardmasterError as error:
                raise CommandError(f"{name}: {error.message} {error.remedy}".strip()) from error
            if not isinstance(engine, ListsNamespaces):
                continue
            there = set(engine.namespaces_there())
            if options["remove"]:
                self._remove(name, engine, there - keep, options["patience"])
                there &= set(engine.namespaces_there())
            found[name] = sorted(str(one) for one in there)
        self.stdout.write(json.dumps(found))

    def _remove(self, name: str, engine: ListsNamespaces, ids: set[uuid.UUID], patience: float) -> None:
        """Until they are gone, or for so long; says what holds up those that stay."""
        deadline = time.monotonic() + patience
        left = {one: Remains(gone=False) for one in ids}
        while left and time.monotonic() < deadline:
            for one in list(left):
                left[one] = _removed(engine, one)
                if left[one].gone:
                    engine_namespace_lost(one, name)
                    del left[one]
            time.sleep(_LOOK_EVERY if left else 0)
        for one, remains in left.items():
            self.stderr.write(f"{one}: {' '.join(remains.left) or 'still there'}")


def _removed(engine: ListsNamespaces, namespace_id: uuid.UUID) -> Remains:
    try:
        return engine.remove(namespace_id)
    except YardmasterError as error:
        return Remains(gone=False, left=(error.message,))
