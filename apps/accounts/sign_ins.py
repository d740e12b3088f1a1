"""Recording who signed in, failed to, or signed out, and whose password is another: whatever way it went.

Receivers of Django's and allauth's signals, connected when the portal starts.
"""

from __future__ import annotations

from typing import Any

from allauth.account.signals import password_changed, password_reset, password_set
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver

from apps.accounts.models import User
from apps.accounts.open_sockets import sign_ins_changed
from apps.accounts.selectors import users_reached_by
from apps.audit.services import record, sign_in_failure_record


@receiver(user_logged_in)
def _signed_in(user: User, **facts: object) -> None:
    record(user, "session.begin", f"user:{user.pk}")


@receiver(user_logged_out)
def _signed_out(user: User | None, **facts: object) -> None:
    if user is not None:
        record(user, "session.end", f"user:{user.pk}")


@receiver(user_login_failed)
def _failed(credentials: dict[str, Any], **facts: object) -> None:
    """By the pages and by the API alike. What was tried may be a name or an address."""
    name = str(credentials.get("username") or credentials.get("email") or "")
    sign_in_failure_record(name, next(iter(users_reached_by(name)), None))


@receiver(password_changed)
def _password_changed(user: User, **facts: object) -> None:
    _password(user, "password.change")


@receiver(password_set)
def _password_set(user: User, **facts: object) -> None:
    _password(user, "password.set")


@receiver(password_reset)
def _password_reset(user: User, **facts: object) -> None:
    _password(user, "password.reset")


def _password(user: User, action: str) -> None:
    """Sessions of before are over, wherever they are; allauth keeps the one of the request alive."""
    sign_ins_changed(user.pk)
    record(user, action, f"user:{user.pk}")
