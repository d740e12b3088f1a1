"""Pages that are for administrators of the portal alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseBase

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.errors import Forbidden

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def require_administrator(user: User) -> None:
    """Raises Forbidden for anybody else."""
    if not user.is_staff:
        raise Forbidden("Only administrators of the portal may do this.", "Ask an administrator.")


def administrators_only(view: View[P]) -> View[P]:
    """The page sends anyone who is not signed in to the sign-in page, and refuses those who are no administrators."""

    def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        require_administrator(user_of(request))
        return view(request, *args, **kwargs)

    found: View[P] = login_required(wraps(view)(checked))
    return found
