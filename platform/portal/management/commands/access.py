"""`manage.py access`: a token and a one-time sign-in link for an administrator, for a user who may run this command.

Prints one line of JSON: `{"token": "…", "link": "…"}`.
"""

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.models import User
from apps.accounts.services import sign_in_link_create, token_create


class Command(BaseCommand):
    help = "Prints a token and a one-time sign-in link for an administrator."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--username", default="", help="whose; the first administrator's where it is not given")
        parser.add_argument("--name", default="command line", help="what the token is called in the account's list")
        parser.add_argument("--hours", type=int, default=24, help="how long the token is good for")

    def handle(self, **options: Any) -> None:
        people = User.objects.filter(is_staff=True, is_active=True).order_by("id")
        if options["username"]:
            people = people.filter(username=options["username"])
        user = people.first()
        if user is None:
            raise CommandError("There is no such administrator: `manage.py prepare` makes the first one.")
        _, token = token_create(
            user=user, name=options["name"], scopes=[], expires_in=timedelta(hours=options["hours"])
        )
        self.stdout.write(json.dumps({"token": token, "link": sign_in_link_create(user)}))
