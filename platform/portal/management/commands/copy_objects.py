"""`manage.py copy_objects --from folder --to s3`: copy everything that is stored to another object store, and compare
it there. See docs/storage.md.
"""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.stores import store_named
from apps.uploads.copying import Copied, objects_copy
from yardmaster.errors import YardmasterError
from yardmaster.quantity import format_bytes


class Command(BaseCommand):
    help = "Copies every stored object to another object store and compares checksums. May be repeated."

    def add_arguments(self, parser: CommandParser) -> None:
        names = list(settings.YARDMASTER_STORES)
        parser.add_argument("--from", dest="source", choices=names, required=True)
        parser.add_argument("--to", dest="target", choices=names, required=True)

    def handle(self, *, source: str, target: str, **options: Any) -> None:
        if source == target:
            raise CommandError(f"--from and --to are both {source}: name two stores.")
        try:
            done = objects_copy(store_named(source), store_named(target), self._tell)
        except YardmasterError as error:
            raise CommandError(f"{error} {error.remedy} Run the command again to continue.".strip()) from error
        for problem in done.problems:
            self.stderr.write(problem)
        if more := done.failed - len(done.problems):
            self.stderr.write(f"… and {more:,} more.")
        if done.failed:
            raise CommandError(f"{done.failed} of {done.objects} objects were not copied.")
        self.stdout.write(f"{_words(done)} are in {target}, and match their checksums.")

    def _tell(self, done: Copied) -> None:
        self.stdout.write(f"{_words(done)} …", ending="\r")


def _words(done: Copied) -> str:
    return f"{done.objects} objects ({format_bytes(done.size)})"
