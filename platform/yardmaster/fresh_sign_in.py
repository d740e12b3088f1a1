"""Whether a sign-in at an OpenID provider is fresh: made for the confirmation that asked for it. Pure.

The portal asks with `prompt=login` and `max_age=0`; that the provider did ask its user again is seen by `auth_time`.
Not here: the way there and back, whose account it is (`apps.accounts.confirming`).
"""

from __future__ import annotations

CLOCKS = 60.0
"""Seconds by which the provider's clock may differ from the portal's."""


def doubt(auth_time: object, *, asked_at: float, now: float, is_sent: bool) -> str:
    """Why this sign-in does not count as fresh, in a sentence for its user; empty where it does. `auth_time` is the
    ID token's, None where it has none; `asked_at` and `now` are seconds since 1970; `is_sent`: the provider is one that
    says when its user signed in. One that says nothing is relied on to honour `prompt=login`."""
    if auth_time is None:
        return "It did not say when you signed in there, so that this may be an old sign-in." if is_sent else ""
    if isinstance(auth_time, bool) or not isinstance(auth_time, int | float):
        return "It did not say in a known form when you signed in there."
    if auth_time > now + CLOCKS:
        return "Its clock is ahead of this portal's by more than a minute."
    if not auth_time >= asked_at - CLOCKS:  # not `<`: what is no number is refused as well
        return "You were signed in there already, and it did not ask you again."
    return ""
