"""How allauth keeps and names second factors here: their secrets are encrypted under the portal's secret key, like
those of jobs. Not here: the rules of second factors (`apps.accounts.second_factor`)."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlsplit

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db import transaction
from django.dispatch import receiver

from apps.accounts.second_factor import may_be_removed
from apps.errors import DomainError
from apps.secrets.sealing import is_current, seal, unseal
from apps.secrets.services import resealing

_BELONGS_TO = "second factor"


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    def encrypt(self, text: str) -> str:
        sealed, key = seal(text.encode(), _BELONGS_TO)
        return f"{key}:{base64.b64encode(sealed).decode()}"

    def decrypt(self, encrypted_text: str) -> str:
        """Raises `CannotOpen` where the portal's secret key is another and the earlier one is not listed."""
        key, _, sealed = encrypted_text.partition(":")
        return unseal(base64.b64decode(sealed), key, _BELONGS_TO, "of a second factor").decode()

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return may_be_removed(authenticator)

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {"id": str(urlsplit(settings.PUBLIC_URL).hostname), "name": "Yardmaster"}


@receiver(resealing)
def second_factors_reseal(**_: Any) -> tuple[int, list[str]]:
    """Seal again what an earlier key of the portal has sealed; may be repeated. Returns how many, and those that do not
    open."""
    done, broken = 0, []
    sealed = Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN)  # of passkeys the public key is kept
    for pk in sealed.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            locked = Authenticator.objects.select_for_update().filter(pk=pk).first()
            if locked is None or not any(map(_is_older, _sealed_in(locked.data))):
                continue
            try:
                locked.data = {name: _again(value) for name, value in locked.data.items()}
            except DomainError as error:
                broken.append(f"second factor of user {locked.user_id}: {error}")
                continue
            locked.save(update_fields=["data"])
            done += 1
    return done, broken


def _sealed_in(data: dict[str, Any]) -> list[str]:
    """What is encrypted of a second factor: texts, and lists of texts."""
    values = [one for value in data.values() for one in (value if isinstance(value, list) else [value])]
    return [one for one in values if isinstance(one, str) and ":" in one]


def _is_older(text: str) -> bool:
    return not is_current(text.partition(":")[0])


def _again(value: Any) -> Any:
    if isinstance(value, list):
        return [_again(one) for one in value]
    if not isinstance(value, str) or ":" not in value:
        return value
    adapter = SecondFactorAdapter()
    return adapter.encrypt(adapter.decrypt(value))
