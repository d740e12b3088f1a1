"""The pages of a namespace's webhooks: which there are, one with its log, and the forms. For managers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import DomainError, words_of
from apps.namespaces.models import Namespace
from apps.webhooks import services
from apps.webhooks.former_makers import managers_among
from apps.webhooks.models import Format, Webhook
from apps.webhooks.selectors import deliveries_of, delivery_of, managed_namespace, webhook_in, webhooks_of
from yardmaster.outgoing.events import EVENTS
from yardmaster.outgoing.targets import LONGEST

AT_ONCE = 50
DELIVERIES = 20
_URL = {"autocomplete": "off", "spellcheck": "false", "inputmode": "url", "maxlength": LONGEST}


class ChangeForm(forms.Form):
    url = forms.CharField(label="New address", required=False, max_length=LONGEST, widget=forms.TextInput(attrs=_URL))
    description = forms.CharField(
        label="Description", required=False, max_length=200, widget=forms.TextInput(attrs={"maxlength": 200})
    )
    events = forms.MultipleChoiceField(choices=list(EVENTS.items()), required=False)
    is_active = forms.BooleanField(label="Active", required=False)


class NewForm(ChangeForm):
    url = forms.CharField(
        label="Address", max_length=LONGEST, widget=forms.TextInput(attrs=_URL),
        help_text="Messages are sent here by POST, over https. A chat's address is a secret, and is masked.",
    )  # fmt: skip
    format = forms.ChoiceField(choices=Format.choices)


@sensitive_post_parameters()
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("secret")
def webhooks(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """All of them, and a form for a new one. A secret is in the answer to the form and nowhere else."""
    user = user_of(request)
    namespace = managed_namespace(user, namespace_id)
    form = NewForm(request.POST if request.method == "POST" else None, initial={"format": Format.JSON})
    if form.is_bound and form.is_valid():
        data = form.cleaned_data | {"format": Format(form.cleaned_data["format"]), "is_active": True}
        try:
            made, secret = services.webhook_create(namespace=namespace, actor=user, **data)
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            return _made(request, namespace, made, secret)
    return _list(request, namespace, form)


def _made(request: HttpRequest, namespace: Namespace, made: Webhook, secret: str) -> HttpResponse:
    messages.success(request, "Webhook created. Send a test event to try it.")
    return _page(request, namespace, made, secret=secret) if secret else redirect("webhook_page", namespace.pk, made.pk)


@sensitive_post_parameters()
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def webhook(request: HttpRequest, namespace_id: UUID, webhook_id: UUID) -> HttpResponse:
    """One webhook, a form that changes it, and what was sent to it."""
    user, namespace, found = _found(request, namespace_id, webhook_id)
    if request.method != "POST":
        return _page(request, namespace, found)
    form = ChangeForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data | {"url": form.cleaned_data["url"] or None}
        try:
            services.webhook_change(webhook=found, actor=user, **data)
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            messages.success(request, "Saved.")
            return redirect("webhook_page", namespace.pk, found.pk)
    return _page(request, namespace, found, form=form)


@never_cache
@login_required
@require_POST
@sensitive_variables("secret")
def webhook_rotate(request: HttpRequest, namespace_id: UUID, webhook_id: UUID) -> HttpResponse:
    user, namespace, found = _found(request, namespace_id, webhook_id)
    try:
        secret = services.secret_rotate(webhook=found, actor=user)
    except DomainError as problem:
        messages.error(request, words_of(problem))
        return redirect("webhook_page", namespace.pk, found.pk)
    return _page(request, namespace, found, secret=secret)


@login_required
@require_POST
def webhook_test(request: HttpRequest, namespace_id: UUID, webhook_id: UUID) -> HttpResponse:
    user, namespace, found = _found(request, namespace_id, webhook_id)
    try:
        services.send_test(webhook=found, actor=user)
    except DomainError as problem:
        messages.error(request, words_of(problem))
    else:
        messages.success(request, "A test event is being sent. Reload to see the answer.")
    return redirect("webhook_page", namespace.pk, found.pk)


@login_required
@require_POST
def webhook_redeliver(request: HttpRequest, namespace_id: UUID, webhook_id: UUID, delivery_id: UUID) -> HttpResponse:
    user, namespace, found = _found(request, namespace_id, webhook_id)
    delivery = delivery_of(found, delivery_id)
    try:
        services.redeliver(delivery=delivery, actor=user)
    except DomainError as problem:
        messages.error(request, words_of(problem))
    else:
        messages.success(request, "The message is being sent again. Reload to see the answer.")
    return redirect("webhook_page", namespace.pk, found.pk)


@login_required
@require_POST
def webhook_delete(request: HttpRequest, namespace_id: UUID, webhook_id: UUID) -> HttpResponse:
    user, namespace, found = _found(request, namespace_id, webhook_id)
    services.webhook_delete(webhook=found, actor=user)
    messages.success(request, "Webhook deleted.")
    return redirect("webhooks_page", namespace.pk)


def _found(request: HttpRequest, namespace_id: UUID, webhook_id: UUID) -> tuple[User, Namespace, Webhook]:
    user = user_of(request)
    namespace = managed_namespace(user, namespace_id)
    return user, namespace, webhook_in(namespace, webhook_id)


def _way(namespace: Namespace) -> list[tuple[str, str]]:
    home = reverse("namespace_page", args=[namespace.pk])
    return [(reverse("namespaces_page"), "Namespaces"), (home, namespace.slug)]


def _list(request: HttpRequest, namespace: Namespace, form: NewForm) -> HttpResponse:
    page = page_of(webhooks_of(namespace), request.GET.get("cursor"), AT_ONCE)
    context = {
        "namespace": namespace,
        "breadcrumbs": _way(namespace),
        "page": page,
        "managers": managers_among(namespace, [one.created_by_id for one in page.rows if one.created_by_id]),
        "form": form,
        "chosen": form["events"].value() or ["job.failed"],
    }
    return render(request, "webhooks/webhooks.html", context)


def _page(
    request: HttpRequest, namespace: Namespace, found: Webhook, *, form: ChangeForm | None = None, secret: str = ""
) -> HttpResponse:
    initial = {name: getattr(found, name) for name in ("description", "events", "is_active")}
    form = form or ChangeForm(initial=initial)
    context: dict[str, Any] = {
        "namespace": namespace,
        "webhook": found,
        "is_former": found.created_by_id not in managers_among(namespace, [found.created_by_id or namespace.pk]),
        "breadcrumbs": [*_way(namespace), (reverse("webhooks_page", args=[namespace.pk]), "Webhooks")],
        "form": form,
        "chosen": form["events"].value() or [],
        "secret": secret,
        "page": page_of(deliveries_of(found), request.GET.get("cursor"), DELIVERIES),
    }
    return render(request, "webhooks/webhook.html", context)


_ALL = "namespaces/<uuid:namespace_id>/webhooks/"
_ONE = f"{_ALL}<uuid:webhook_id>/"
pages_urlpatterns: list[URLPattern | URLResolver] = [
    path(_ALL, webhooks, name="webhooks_page"),
    path(_ONE, webhook, name="webhook_page"),
    path(f"{_ONE}secret/", webhook_rotate, name="webhook_rotate"),
    path(f"{_ONE}test/", webhook_test, name="webhook_test_form"),
    path(f"{_ONE}delete/", webhook_delete, name="webhook_delete"),
    path(f"{_ONE}deliveries/<uuid:delivery_id>/redeliver/", webhook_redeliver, name="webhook_redeliver"),
]
