"""Who may call an address at all: a user who is signed in, or a token whose scopes reach.

Not here: whose objects these are (`apps.namespaces.selectors`).
"""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from apps.errors import Forbidden

SCOPES = ("read", "jobs", "data", "admin")
READ = "read"


class ScopedAndSignedIn(BasePermission):
    """Signed in. With a scoped token, the view's `scope` must be among its scopes; `read` suffices for safe methods.

    A view without a scope can be read with any token and changed only with one that has no scopes (or a session):
    there lie the owner's own profile and tokens, and a scoped token must not make itself a stronger one.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not (request.user and request.user.is_authenticated):
            return False
        scopes = getattr(request.auth, "scopes", None)
        if not scopes:
            return True
        needed: str | None = getattr(view, "scope", None)
        safe = request.method in SAFE_METHODS
        if needed in scopes or (safe and (needed is None or READ in scopes)):
            return True
        raise Forbidden(f"This token's scopes are {', '.join(scopes)}, and {_reaches(needed, safe)}.", _remedy(needed))


class IsAdministrator(ScopedAndSignedIn):
    """An administrator of the portal, under the same rule of scopes."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        if not request.user.is_staff:
            raise Forbidden("Only administrators of the portal may do this.", "Ask an administrator.")
        return True


def _reaches(needed: str | None, safe: bool) -> str:
    if needed is None:
        return "none of them reaches this"
    return f"this needs {needed}" + (f" or {READ}" if safe else "")


def _remedy(needed: str | None) -> str:
    return "Use a token with no scopes, or sign in." if needed is None else f"Use a token with the scope {needed}."
