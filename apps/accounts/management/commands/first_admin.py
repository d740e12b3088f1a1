"""`manage.py first_admin`: a new portal's administrator, and a link to sign in with. May be run at every start."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.services import first_administrator
from apps.errors import Invalid


class Command(BaseCommand):
    help = "Make the first administrator where there is none, and print a link that signs in once. Else do nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--username", default="admin", help="name of the administrator (admin)")
        parser.add_argument("--email", default="", help="address of the administrator")
        parser.add_argument("--password-file", type=Path, help="file that holds the password; without it only the link")

    def handle(self, *, username: str, email: str, password_file: Path | None, **options: Any) -> None:
        password = _read(password_file) if password_file is not None else None
        try:
            link = first_administrator(username=username, email=email, password=password)
        except Invalid as problem:
            raise CommandError(problem.detail) from problem
        if link is None:
            self.stdout.write("An administrator already exists.")
        else:
            self.stdout.write(f"Made the administrator {username}. Sign in once, within 15 minutes, with:\n{link}")


def _read(file: Path) -> str:
    try:
        return file.read_text().strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"The password cannot be read: {error}") from error
