"""The page on which people choose which notifications they get, by which way and when, and see those that were sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.errors import DomainError, words_of
from apps.namespaces.selectors import namespace_for, namespaces_visible
from apps.notifications import own_chat
from apps.notifications.choosing import (
    LARGEST_FLOOD,
    Choices,
    all_choices_of,
    exception_choose,
    notices_choose,
)
from apps.notifications.models import WaitLimit
from apps.notifications.services import notices_of
from apps.webhooks.models import Format
from yardmaster.outgoing.notices import KINDS, Choice, Pace, Way
from yardmaster.outgoing.targets import LONGEST

WAYS = {Way.MAIL: "E-mail", Way.CHAT: "Chat or webhook", Way.NONE: "Nothing"}
PACES = {Pace.NOW: "At once", Pace.HOURLY: "Hourly digest", Pace.DAILY: "Daily digest"}
SHOWN = 20


@dataclass(frozen=True)
class KindRow:
    """One kind of event with what was chosen for it."""

    kind: str
    words: str
    choice: Choice


class MoreForm(forms.Form):
    """What is chosen for all kinds together."""

    wait_minutes = forms.TypedChoiceField(choices=WaitLimit.choices, coerce=int)
    with_log = forms.BooleanField(required=False)
    daily_hour = forms.IntegerField(min_value=0, max_value=23)
    flood = forms.IntegerField(min_value=0, max_value=LARGEST_FLOOD)


class ChatForm(forms.Form):
    url = forms.CharField(max_length=LONGEST)
    format = forms.ChoiceField(choices=list(own_chat.FORMATS.items()))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """All choices; POST keeps those of every kind."""
    user = user_of(request)
    form = MoreForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            notices_choose(user, _asked(request.POST), **form.cleaned_data)
        except DomainError as problem:
            form.add_error(None, words_of(problem))
        else:
            messages.success(request, "Saved.")
            return redirect("notifications_page")
    return render(request, "notifications/notifications.html", _context(user, form), status=422 if form.errors else 200)


@login_required
@require_POST
def exception(request: HttpRequest) -> HttpResponse:
    """Choose otherwise for one kind in one namespace, or (`way` empty) the same as everywhere again."""
    user, data = user_of(request), request.POST

    def choose() -> str:
        namespace = namespace_for(user, data.get("namespace", ""))
        choice = Choice(_way(data.get("way")), _pace(data.get("pace"))) if data.get("way") else None
        exception_choose(user, data.get("kind", "")[:40], namespace, choice)
        return "Saved."

    return _done(request, choose)


@sensitive_post_parameters("url")
@sensitive_variables("secret")
@never_cache
@login_required
@require_POST
def chat(request: HttpRequest) -> HttpResponse:
    """Set the user's own chat or webhook up, test it, remove it, or make a new secret. A secret is in the answer to the
    form and nowhere else."""
    user, action = user_of(request), request.POST.get("action")
    if action == "test":
        return _done(request, lambda: _test(user))
    if action == "remove":
        return _done(request, lambda: _remove(user))
    try:
        words, secret = _rotate(user) if action == "rotate" else _save(user, request.POST)
    except DomainError as problem:
        messages.error(request, words_of(problem))
        return redirect("notifications_page")
    messages.success(request, words)
    if not secret:
        return redirect("notifications_page")
    return render(request, "notifications/notifications.html", {**_context(user, MoreForm()), "secret": secret})


def _test(user: User) -> str:
    own_chat.own_chat_test(user=user)
    return "A test message is being sent. Reload to see the answer."


def _remove(user: User) -> str:
    own_chat.own_chat_remove(user=user)
    return "Address removed."


def _rotate(user: User) -> tuple[str, str]:
    return "New secret made.", own_chat.own_chat_secret(user=user)


def _save(user: User, asked: QueryDict) -> tuple[str, str]:
    form = ChatForm(asked)
    if not form.is_valid():
        raise DomainError("Enter the address of your program or of an incoming webhook, and choose what it is.")
    data = form.cleaned_data
    _, secret = own_chat.own_chat_set(user=user, url=data["url"], format=Format(data["format"]))
    return "Address saved. Send a test message to try it.", secret


def _done(request: HttpRequest, act: Callable[[], str]) -> HttpResponse:
    try:
        messages.success(request, act())
    except DomainError as problem:
        messages.error(request, words_of(problem))
    return redirect("notifications_page")


def _asked(data: QueryDict) -> dict[str, Choice]:
    """What the table says. A kind that is not in it stays as it is."""
    return {
        kind: Choice(_way(data.get(f"way-{kind}")), _pace(data.get(f"pace-{kind}")))
        for kind in KINDS if f"way-{kind}" in data
    }  # fmt: skip


def _way(text: str | None) -> Way:
    return Way(text) if text in set(Way) else Way.NONE


def _pace(text: str | None) -> Pace:
    return Pace(text) if text in set(Pace) else Pace.NOW


def _context(user: User, form: MoreForm) -> dict[str, object]:
    choices: Choices = all_choices_of(user)
    own = own_chat.own_chat(user)
    return {
        "form": form,
        "mail": choices.mail,
        "kinds": [KindRow(kind, words, choices.by_kind[kind]) for kind, words in KINDS.items()],
        "exceptions": [(one, KINDS.get(one.kind, one.kind)) for one in choices.exceptions],
        "namespaces": namespaces_visible(user).order_by("slug")[:200],
        "ways": WAYS.items(),
        "paces": PACES.items(),
        "all_kinds": KINDS.items(),
        "wait_limits": WaitLimit.choices,
        "hours": [(hour, f"{hour:02}:00") for hour in range(24)],
        "chat": own,
        "chat_words": own_chat.FORMATS.get(own.format, "") if own else "",
        "chats": own_chat.FORMATS.items(),
        "last": own_chat.last_delivery(own) if own else None,
        "notices": notices_of(user, SHOWN),
    }


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("account/notifications/", notifications, name="notifications_page"),
    path("account/notifications/exception/", exception, name="notification_exception"),
    path("account/notifications/chat/", chat, name="notification_chat"),
]
