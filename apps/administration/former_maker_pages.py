"""The page of what former managers have left in a namespace, and the notice of it. For its managers."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.selectors import user_of
from apps.errors import NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may, namespace_for
from apps.webhooks.former_makers import left_by_former, left_keep, left_revoke


@login_required
@require_safe
def former_makers(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """What they have left, by person."""
    namespace = _managed(request, namespace_id)
    context = {
        "namespace": namespace,
        "left": left_by_former(namespace),
        "breadcrumbs": [
            (reverse("namespaces_page"), "Namespaces"),
            (reverse("namespace_page", args=[namespace.pk]), namespace.slug),
        ],
    }
    return render(request, "namespaces/former_makers.html", context)


@login_required
@require_safe
def notice(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """A part of the namespace's page: empty where nothing is left, and for who is no manager."""
    user = user_of(request)
    namespace = namespace_for(user, namespace_id)
    left = left_by_former(namespace) if may(user, namespace, Role.MANAGER) else []
    return render(request, "namespaces/parts/former_makers.html", {"namespace": namespace, "left": left})


@login_required
@require_POST
def former_maker_revoke(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    namespace = _managed(request, namespace_id)
    webhooks, tokens = left_revoke(namespace=namespace, maker_id=_maker(request), actor=user_of(request))
    done = [_counted(tokens, "token", "revoked"), _counted(webhooks, "webhook", "switched off")]
    messages.success(request, f"{', '.join(one for one in done if one)}.")
    return redirect("former_makers_page", namespace.pk)


@login_required
@require_POST
def former_maker_keep(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    namespace = _managed(request, namespace_id)
    left_keep(namespace=namespace, maker_id=_maker(request), actor=user_of(request))
    messages.success(request, "Kept. You are now named as the creator.")
    return redirect("former_makers_page", namespace.pk)


def _managed(request: HttpRequest, namespace_id: UUID) -> Namespace:
    return namespace_for(user_of(request), namespace_id, at_least=Role.MANAGER)


def _maker(request: HttpRequest) -> UUID | None:
    """From the form; empty: those whose accounts were removed. Raises NotFound for what is no id."""
    text = request.POST.get("maker", "")
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise NotFound("There is no such user.") from error


def _counted(count: int, noun: str, verb: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'} {verb}" if count else ""


_ALL = "namespaces/<uuid:namespace_id>/former-managers/"
pages_urlpatterns: list[URLPattern | URLResolver] = [
    path(_ALL, former_makers, name="former_makers_page"),
    path(f"{_ALL}notice/", notice, name="former_makers_part"),
    path(f"{_ALL}revoke/", former_maker_revoke, name="former_maker_revoke"),
    path(f"{_ALL}keep/", former_maker_keep, name="former_maker_keep"),
]
