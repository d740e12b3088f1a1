"""The page on which an administrator sets the notice to all, and the button by which its readers hide it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.api.problems import show_in_form
from apps.errors import DomainError, NotFound
from apps.notifications.broadcasts import (
    LONGEST,
    BroadcastFacts,
    broadcast_hide,
    broadcast_now,
    broadcast_remove,
    broadcast_set,
)
from apps.notifications.models import Broadcast

_TIME = "%Y-%m-%dT%H:%M"
_LONGEST_ADDRESS = 2_000


def _time_field(label: str, help_text: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"class": "form-control", "type": "datetime-local"}, format=_TIME)
    return forms.DateTimeField(label=label, required=False, widget=widget, help_text=help_text)


def _check_field(label: str) -> forms.BooleanField:
    return forms.BooleanField(
        label=label, required=False, widget=forms.CheckboxInput(attrs={"class": "form-check-input"})
    )


class NoticeForm(forms.Form):
    text = forms.CharField(
        label="Text", max_length=LONGEST, widget=forms.Textarea(attrs={"class": "form-control", "rows": 3}),
        help_text=f"Plain text of up to {LONGEST} characters. Addresses such as https://example.org become links.",
    )  # fmt: skip
    kind = forms.ChoiceField(
        label="Kind", choices=Broadcast.Kind.choices, widget=forms.Select(attrs={"class": "form-select"})
    )
    begins_at = _time_field("From (UTC)", "Empty: at once.")
    ends_at = _time_field("To (UTC)", "Empty: until it is removed.")
    on_sign_in = _check_field("Also on the sign-in page, to people who are not signed in")
    by_mail = _check_field("Also by e-mail, to every active user with an address")


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def notice(request: HttpRequest) -> HttpResponse:
    """The notice there is, and a form that sets another in its place."""
    found, is_post = broadcast_now(), request.method == "POST"
    form = NoticeForm(request.POST if is_post else None, initial=_initial(found))
    if is_post and form.is_valid():
        try:
            made = broadcast_set(BroadcastFacts(**form.cleaned_data), actor=user_of(request))
            is_now = made.is_current(timezone.now())
            messages.success(request, "Every page shows the notice." if is_now else "The notice is scheduled.")
            return redirect("admin_notice_page")
        except DomainError as problem:
            show_in_form(form, problem)
    now = timezone.now()
    context = {
        "form": form, "notice": found, "is_current": found is not None and found.is_current(now),
        "is_over": found is not None and found.ends_at is not None and found.ends_at <= now,
    }  # fmt: skip
    return render(request, "notifications/notice.html", context, status=400 if form.errors else 200)


@administrators_only
@require_POST
def notice_remove(request: HttpRequest) -> HttpResponse:
    if broadcast_remove(actor=user_of(request)):
        messages.success(request, "The notice is removed.")
    return redirect("admin_notice_page")


@login_required
@require_POST
def notice_hide(request: HttpRequest, broadcast_id: UUID) -> HttpResponse:
    """Back to the page on which it was hidden; also where the notice was removed in the meantime."""
    try:
        broadcast_hide(broadcast_id, user=user_of(request))
    except NotFound:
        messages.info(request, "The notice was changed or removed.")
    address = request.POST.get("next", "")[:_LONGEST_ADDRESS]
    is_ours = url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    return redirect(address if is_ours and address.startswith("/") else "/")


def _initial(found: Broadcast | None) -> dict[str, Any]:
    names = ("text", "kind", "begins_at", "ends_at", "on_sign_in")
    return {name: getattr(found, name) for name in names} if found is not None else {}


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/notice/", notice, name="admin_notice_page"),
    path("admin/notice/remove/", notice_remove, name="admin_notice_remove"),
    path("notices/<uuid:broadcast_id>/hide/", notice_hide, name="notice_hide"),
]
