"""The pages of passkeys: a list, adding, renaming and removing; signing in and confirming with one. They are allauth's
views with our rules, and stand before allauth's own addresses of the same paths.

Not here: what of a browser's answer is believed (`passkeys`), and how many may be tried (`attempts`).
"""

from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn import views
from django.contrib import messages
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, path, reverse

from apps.accounts.attempts import passkey_challenge_count
from apps.accounts.passkeys import passkey_remove, passkeys_refuse_many, passkeys_work
from apps.accounts.second_factor import may_be_removed
from apps.accounts.selectors import user_of
from apps.errors import Conflict, words_of


class PasskeyList(views.ListWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def get_queryset(self) -> Any:
        return super().get_queryset().order_by("created_at", "pk")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "passkeys_work": passkeys_work()}


class PasskeyAdd(views.AddWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "passkeys_work": passkeys_work()}

    def form_valid(self, form: Form) -> HttpResponse:
        try:
            with transaction.atomic():
                passkeys_refuse_many(user_of(self.request))
                answer: HttpResponse = super().form_valid(form)
        except Conflict as problem:
            messages.error(self.request, words_of(problem))
            return redirect("mfa_list_webauthn")
        return answer

    def get_success_url(self) -> str:
        return reverse("mfa_view_recovery_codes" if self.did_generate_recovery_codes else "mfa_list_webauthn")


class PasskeyRemove(views.RemoveWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "is_needed": not may_be_removed(self.object)}

    def form_valid(self, form: Form) -> HttpResponse:
        factor: Authenticator = self.get_object()
        try:
            passkey_remove(self.request, factor)
        except Conflict as problem:
            messages.error(self.request, words_of(problem))
        else:
            messages.success(self.request, f"Removed the passkey {factor}.")
        return redirect("mfa_list_webauthn")


class PasskeySignIn(views.LoginWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """A challenge, as JSON: each is a session, so that they are counted. Raises `TooMany`."""
        passkey_challenge_count(request)
        answer: HttpResponseBase = super().get(request, *args, **kwargs)
        return answer


class PasskeyConfirm(views.ReauthenticateWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def form_invalid(self, form: Form) -> HttpResponse:
        answer: HttpResponse = self.render_to_response(self.get_context_data(form=form))
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), **kwargs}


_HERE = "accounts/2fa/webauthn/"
pages_urlpatterns: list[URLPattern | URLResolver] = [
    path(_HERE, PasskeyList.as_view(), name="passkeys_page"),
    path(f"{_HERE}add/", PasskeyAdd.as_view(), name="passkey_add_page"),
    path(f"{_HERE}keys/<int:pk>/remove/", PasskeyRemove.as_view(), name="passkey_remove_page"),
    path(f"{_HERE}login/", PasskeySignIn.as_view(), name="passkey_sign_in"),
    path(f"{_HERE}reauthenticate/", PasskeyConfirm.as_view(), name="passkey_confirm_page"),
]
