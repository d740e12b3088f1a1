"""What of a webhook is sealed: its address, the secret that signs, and for a while the secret before it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.dispatch import receiver

from apps.secrets.resealing import rows_reseal
from apps.secrets.sealing import seal, unseal
from apps.secrets.services import resealing
from apps.webhooks.models import Webhook

OVERLAP = timedelta(hours=24)
"""How long messages are signed with the earlier secret, too, after a rotation."""


@dataclass(frozen=True)
class Parts:
    url: str
    secret: str = ""
    """Empty where the form of the messages has no signature."""
    earlier: str = ""
    earlier_until: str = ""

    def keys(self, now: datetime) -> list[str]:
        """The secrets that sign now, the present one first."""
        overlaps = self.earlier and datetime.fromisoformat(self.earlier_until) > now
        return [self.secret, self.earlier] if overlaps else [self.secret] if self.secret else []

    def rotated(self, secret: str, now: datetime) -> Parts:
        return Parts(self.url, secret, self.secret, (now + OVERLAP).isoformat())


def parts_seal(webhook: Webhook, parts: Parts) -> None:
    """Put the parts into the row, which is not saved."""
    webhook.sealed, webhook.key_id = seal(json.dumps(asdict(parts)).encode(), _belongs_to(webhook))


def parts_of(webhook: Webhook) -> Parts:
    """Raises `CannotOpen`."""
    value = unseal(bytes(webhook.sealed), webhook.key_id, _belongs_to(webhook), f"of the webhook {webhook.shown}")
    return Parts(**json.loads(value))


@receiver(resealing)
def webhooks_reseal(**_: Any) -> tuple[int, list[str]]:
    """Seal again what an earlier key of the portal has sealed; may be repeated. Returns how many, and those that do not
    open."""
    return rows_reseal(
        Webhook.objects.all(), lambda one: parts_seal(one, parts_of(one)), lambda one: f"webhook {one.pk}"
    )


def _belongs_to(webhook: Webhook) -> str:
    return f"webhook:{webhook.pk}"
