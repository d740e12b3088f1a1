"""An account that is made by an invitation: which address it has, and when that counts.

Not here: the invitation itself (`apps.namespaces.invitations`), sign-up without one (`apps.accounts.sign_up`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.conf import settings

from apps.accounts.addresses import address_ask
from apps.accounts.models import User
from apps.errors import Invalid
from apps.namespaces.invitations import address_is_vouched_for, invitation_accept
from apps.namespaces.models import Invitation


def account_by_invitation(token: str, invitation: Invitation, data: Mapping[str, Any]) -> User:
    """Make the account. Where the portal sends mail, an address that no administrator gave waits until its reader has
    confirmed it, as at sign-up. Raises as `invitation_accept`."""
    email = data["email"]
    waits = bool(email) and settings.YARDMASTER_SENDS_MAIL and not address_is_vouched_for(invitation, email)
    user = invitation_accept(
        token=token, username=data["username"], password=data["password"], email="" if waits else email
    )
    if waits:
        with suppress(Invalid):  # the page of the account offers to send the mail again
            address_ask(user=user, email=email)
    return user
