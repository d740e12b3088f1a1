"""`manage.py rotate_secrets`: encrypt all secrets again, after the portal's secret key has changed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.secrets.services import secrets_reseal


class Command(BaseCommand):
    help = (
        "Encrypt every secret that an earlier key encrypted with the present key. The earlier keys are those in "
        "YARDMASTER_EARLIER_SECRET_KEYS. May be repeated, also while the portal runs."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        done, broken = secrets_reseal()
        self.stdout.write(f"Encrypted {done} secrets again.")
        if broken:
            raise CommandError("These secrets cannot be read:\n" + "\n".join(broken))
