"""`manage.py prepare`: bring the database to this version, make the store's bucket, and the first administrator where
there is none.

Its last line is JSON, for `portal.up`: `{"sign_in_link": "…" | ""}`. Repeating it changes nothing.
"""

import json
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from apps.accounts.services import first_administrator
from apps.stores import storage
from yardmaster.errors import YardmasterError


class Command(BaseCommand):
    help = "Brings the database to this version, makes the store's bucket, and the first administrator."

    def handle(self, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        try:
            storage().prepare()
        except YardmasterError as error:
            raise CommandError(f"{error} {error.remedy}".strip()) from error
        self.stdout.write(json.dumps({"sign_in_link": first_administrator() or ""}))
