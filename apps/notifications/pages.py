"""The page on which people choose which notifications they get, and see those that were sent."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_http_methods

from apps.accounts.models import User
from apps.notifications.models import MailChoices, WaitLimit
from apps.notifications.services import choices_of, choices_set, notices_of


class ChoicesForm(forms.Form):
    on_failure = forms.BooleanField(required=False)
    on_success = forms.BooleanField(required=False)
    on_stop = forms.BooleanField(required=False)
    on_wait = forms.BooleanField(required=False)
    wait_minutes = forms.TypedChoiceField(choices=WaitLimit.choices, coerce=int)
    with_log = forms.BooleanField(required=False)

    @staticmethod
    def values_of(choices: MailChoices) -> dict[str, object]:
        return {name: getattr(choices, name) for name in ChoicesForm.base_fields}


SHOWN = 20


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    assert isinstance(request.user, User)
    data = request.POST if request.method == "POST" else None
    form = ChoicesForm(data, initial=ChoicesForm.values_of(choices_of(request.user)))
    if form.is_bound and form.is_valid():
        choices_set(user=request.user, **form.cleaned_data)
        messages.success(request, "Saved.")
        return redirect("notifications_page")
    context = {
        "form": form,
        "notices": notices_of(request.user, SHOWN),
    }
    return render(request, "notifications/notifications.html", context)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("account/notifications/", notifications, name="notifications_page"),
]
