"""`manage.py prepare`: bring the database to this version and make the first administrator where there is none.

Its last line is JSON, for `portal.up`: `{"sign_in_link": "…" | ""}`. Repeating it changes nothing.
"""

import json
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from apps.accounts.services import first_administrator


class Command(BaseCommand):
    help = "Brings the database to this version and makes the first administrator where there is none."

    def handle(self, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        self.stdout.write(json.dumps({"sign_in_link": first_administrator() or ""}))
