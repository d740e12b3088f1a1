"""How often one may try to sign in over the API. The pages have allauth's own limits.

Counted in this process's memory (`CACHES`): sign-in then works while the message broker does not.
"""

from __future__ import annotations

import hashlib
from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle


class SignInThrottle(SimpleRateThrottle):
    """Per address and name: nobody is locked out by somebody else's guesses."""

    scope = "sign_in"

    def get_cache_key(self, request: Request, view: Any) -> str:
        name = request.data.get("username") if isinstance(request.data, dict) else None
        who = f"{self.get_ident(request)}\n{str(name).strip()[:254].casefold()}"
        return f"sign-in:{hashlib.sha256(who.encode()).hexdigest()}"


class SignInAddressThrottle(SimpleRateThrottle):
    """Per address alone: one who tries one password on many names."""

    scope = "sign_in_address"

    def get_cache_key(self, request: Request, view: Any) -> str:
        return f"sign-in-address:{self.get_ident(request)}"
