"""Have the days of use summed again, from the ledger."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from apps.accounting.rollup import usage_rebuild, usage_sweep


class Command(BaseCommand):
    help = "Sum the days of use again, from the ledger. May be repeated, and interrupted: the workers continue."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--since", help="The first day (UTC), such as 2026-11-01. Without it all days.")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            since = date.fromisoformat(options["since"]) if options["since"] else None
        except ValueError as error:
            raise CommandError(f"--since {options['since']} is no day such as 2026-11-01.") from error
        usage_rebuild(since)
        self.stdout.write(f"{usage_sweep(timezone.now(), longest=float('inf'))} days summed.")
