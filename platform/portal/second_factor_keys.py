"""How allauth keeps and names second factors here: their secrets are encrypted under the portal's secret key, like
those of jobs. Not here: the rules of second factors (`apps.accounts.second_factor`)."""

from __future__ import annotations

import base64
from urllib.parse import urlsplit

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings

from apps.accounts.second_factor import may_be_removed
from apps.secrets.sealing import seal, unseal

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
