"""Who may make an account: from two variables, of which one is older.

Not here: what each mode allows (`apps.accounts.sign_up`, `apps.namespaces.invitations`).
"""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from portal import env

OPEN, INVITATION, CLOSED = "open", "invitation", "closed"
MODES = (OPEN, INVITATION, CLOSED)


def sign_up_mode() -> str:
    """`YARDMASTER_SIGN_UP`; unset: what the older `YARDMASTER_OPEN_SIGN_UP` says. Raises where they contradict."""
    is_open = env.flag("YARDMASTER_OPEN_SIGN_UP")
    mode = env.one_of("YARDMASTER_SIGN_UP", MODES, OPEN if is_open else INVITATION)
    if is_open and mode != OPEN:
        raise ImproperlyConfigured(
            f"YARDMASTER_OPEN_SIGN_UP=1 contradicts YARDMASTER_SIGN_UP={mode}: remove YARDMASTER_OPEN_SIGN_UP."
        )
    return mode
