"""401 before Django sees a request of the API: where the address needs someone who is signed in, and the caller is
surely no one. Through all of Django such an answer costs much more, and anyone may ask for it.

The answer is the one that the view would give. Where the database could not be asked, or a session comes along, Django
decides. Not here: who is calling (`callers`), and how often one may (`rate_limit`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.urls import Resolver404, resolve
from rest_framework import exceptions
from rest_framework.views import APIView

from apps.accounts.authentication import NO_TOKEN, SCHEME, UNKNOWN_TOKEN
from apps.api.permissions import ScopedAndSignedIn
from apps.api.problems import ApiProblem, problem_of
from portal.callers import Caller, Doubt

_LONGEST_PATH = 300
_SAID = {Doubt.NOTHING: "", Doubt.MALFORMED: NO_TOKEN, Doubt.UNKNOWN: UNKNOWN_TOKEN}
_AS_IT_COMES = ("get_permissions", "get_authenticators", "check_permissions", "perform_authentication")
"""Methods that decide who may call: a view with one of its own is left to Django."""


def refusal_of(kind: str, path: str, caller: Caller) -> ApiProblem | None:
    """The problem to answer with, or None where the request continues. `kind` as in ASGI."""
    if kind != "http" or caller.doubt not in _SAID or not path.startswith("/api/") or not needs_a_user(path):
        return None
    return _problem(caller.doubt)


@lru_cache
def _problem(doubt: Doubt) -> ApiProblem | None:
    detail = _SAID[doubt]
    error = exceptions.AuthenticationFailed(detail) if detail else exceptions.NotAuthenticated()
    error.auth_header = SCHEME  # type: ignore[union-attr]  # the framework sets it as well
    return problem_of(error)


def needs_a_user(path: str) -> bool:
    """Whether the view at this address answers every method with 401 unless someone is signed in."""
    return len(path) <= _LONGEST_PATH and _needs_a_user(path)


@lru_cache(maxsize=2_000)
def _needs_a_user(path: str) -> bool:
    try:
        view: Any = getattr(resolve(path).func, "cls", None)
    except Resolver404:
        return False
    if view is None or not issubclass(view, APIView) or any(_is_own(view, one) for one in _AS_IT_COMES):
        return False
    first = next(iter(view.permission_classes), object)
    usual = view.authentication_classes == APIView.authentication_classes
    return usual and issubclass(first, ScopedAndSignedIn)


def _is_own(view: Any, name: str) -> bool:
    return getattr(view, name) is not getattr(APIView, name)
