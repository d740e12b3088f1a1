"""Which namespace a person works in, on every page: named in the address, else remembered in the session, else his own.

Views call `current_namespace`; templates have `current_namespace` and `namespaces` from the context processor.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.errors import NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.personal import personal_namespace_create
from apps.namespaces.selectors import namespace_for, require_known_role, role_in, role_of, shares_of

_KEY = "namespace"
_NAMED = "_current_namespace"
_OWN = "_own_namespaces"


def current_namespace(request: HttpRequest) -> Namespace:
    """The namespace of this request, for a signed-in user. A valid `?namespace=` (slug or id) is remembered in the
    session; raises a 404 problem for one that is unknown or foreign."""
    found: Namespace | None = getattr(request, _NAMED, None)
    if found is None:
        found = _asked_for(request) or _remembered(request) or _personal(request)
        setattr(request, _NAMED, found)
    return found


def own_namespaces(request: HttpRequest) -> list[Namespace]:
    """Those the user is a member of: his own first, then by name."""
    found: list[Namespace] | None = getattr(request, _OWN, None)
    if found is None:
        found = sorted(shares_of(user_of(request)), key=lambda one: (one.owner_id is None, one.slug))
        setattr(request, _OWN, found)
    return found


def role_within(request: HttpRequest, namespace: Namespace) -> Role | None:
    """As `role_of` for the user of this request, from the namespaces that every page reads."""
    return role_in(user_of(request), namespace, own_namespaces(request))


def require_role_within(request: HttpRequest, namespace: Namespace, at_least: Role) -> None:
    """As `require_role` for the user of this request, without asking the database again where that page has."""
    user = user_of(request)
    role = role_within(request, namespace) or role_of(user, namespace)  # of very many namespaces a page reads some
    require_known_role(user, role, namespace, at_least)


def namespaces(request: HttpRequest) -> dict[str, Any]:
    """The context processor. Asks the database only where a template shows them."""
    if not isinstance(getattr(request, "user", None), User):
        return {}
    return {
        "current_namespace": SimpleLazyObject(lambda: _current_or_own(request)),
        "namespaces": SimpleLazyObject(lambda: own_namespaces(request)),
    }


def _current_or_own(request: HttpRequest) -> Namespace:
    """As `current_namespace`, but the page that says "not found" can be shown, too."""
    try:
        return current_namespace(request)
    except NotFound:
        return _remembered(request) or _personal(request)


def _asked_for(request: HttpRequest) -> Namespace | None:
    ref = request.GET.get("namespace", "")
    if not ref:
        return None
    found = _among_own(request, ref) or namespace_for(user_of(request), ref)
    if request.session.get(_KEY) != str(found.pk):
        request.session[_KEY] = str(found.pk)
    return found


def _remembered(request: HttpRequest) -> Namespace | None:
    ref = request.session.get(_KEY, "")
    if not ref:
        return None
    found = _among_own(request, ref)
    if found is None and user_of(request).is_staff:
        found = Namespace.objects.filter(pk=ref).first()
    return found


def _personal(request: HttpRequest) -> Namespace:
    user = user_of(request)
    return next((one for one in own_namespaces(request) if one.owner_id == user.pk), None) or personal_namespace_create(
        user
    )


def _among_own(request: HttpRequest, ref: str) -> Namespace | None:
    return next((one for one in own_namespaces(request) if ref in (one.slug, str(one.pk))), None)
