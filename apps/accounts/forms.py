"""What people type into the pages of their account."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from allauth.account.adapter import get_adapter
from allauth.account.forms import ChangePasswordForm, ResetPasswordKeyForm
from django import forms
from django.conf import settings

from apps.accounts.models import User
from apps.accounts.services import password_confirmed, token_lifetime_default, tokens_revoke_all

_LIFETIMES = {
    "week": timedelta(days=7),
    "month": timedelta(days=30),
    "quarter": timedelta(days=90),
    "year": timedelta(days=365),
}
_NEVER = "ever"
SCOPE_WORDS = {
    "read": "View everything that you can view. Read-only.",
    "jobs": "Launch, stop, retry and delete jobs.",
    "data": "Upload, rename and delete datasets and code.",
    "admin": "Manage members. If you are an administrator: all administration.",
}


class ProfileForm(forms.Form):
    first_name = forms.CharField(label="First name", max_length=150, required=False)
    last_name = forms.CharField(label="Last name", max_length=150, required=False)
    time_zone = forms.CharField(label="Time zone", max_length=64, required=False)

    def clean_time_zone(self) -> str:
        zone: str = self.cleaned_data["time_zone"]
        if zone and zone not in _zones():
            raise forms.ValidationError("Unknown time zone. Use a name like Europe/Berlin, or leave it empty.")
        return zone


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


class AddressForm(forms.Form):
    """A new address lets its reader reset the password, so that it takes the present one to change it."""

    email = forms.EmailField(label="E-mail address", max_length=254, required=False)
    password = forms.CharField(
        label="Your password",
        max_length=500,
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: User, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]  # handed on as they came
        if user.has_usable_password():
            self.fields["password"].required = True
        else:
            del self.fields["password"]


class TokenForm(forms.Form):
    name = forms.CharField(label="Name", max_length=100)
    reach = forms.ChoiceField(choices=[("scopes", ""), ("all", "")], initial="scopes")
    scopes = forms.MultipleChoiceField(choices=list(SCOPE_WORDS.items()), required=False)
    lifetime = forms.ChoiceField(label="Expires after")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lifetimes = _lifetimes()
        field = self.fields["lifetime"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(key, _words(time)) for key, time in self._lifetimes.items()]
        default = token_lifetime_default()
        field.initial = next(key for key, time in self._lifetimes.items() if time == default)

    def clean(self) -> dict[str, object]:
        if self.cleaned_data.get("reach") == "scopes" and not self.cleaned_data.get("scopes"):
            self.add_error("scopes", "Select at least one scope, or full access.")
        return self.cleaned_data

    def chosen_scopes(self) -> list[str]:
        return [] if self.cleaned_data["reach"] == "all" else list(self.cleaned_data["scopes"])

    def expires_in(self) -> timedelta | None:
        return self._lifetimes[self.cleaned_data["lifetime"]]


def _lifetimes() -> dict[str, timedelta | None]:
    """What may be chosen, the shortest first. The default is always among it."""
    longest, default = settings.YARDMASTER_TOKEN_LONGEST_LIFETIME, token_lifetime_default()
    times = {key: time for key, time in _LIFETIMES.items() if not longest or time <= longest}
    if default not in times.values():
        times["default"] = default
    shown = dict(sorted(times.items(), key=lambda one: one[1]))
    return {**shown} if longest else {**shown, _NEVER: None}


def _words(time: timedelta | None) -> str:
    if time is None:
        return "never"
    for unit, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if time.total_seconds() >= seconds:
            count = round(time.total_seconds() / seconds)
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return f"{int(time.total_seconds())} seconds"


class _RevokesTokens(forms.Form):
    """A new password does not end tokens by itself: scripts continue. A user who fears theft can end them with it."""

    revoke_tokens = forms.BooleanField(
        label="Also revoke all personal tokens (scripts and command lines must sign in again)",
        required=False,
        initial=True,
    )

    def revoke_for(self, user: User) -> None:
        if self.cleaned_data["revoke_tokens"]:
            tokens_revoke_all(user=user, actor=user)


class PasswordChangeForm(_RevokesTokens, ChangePasswordForm):  # type: ignore[misc]  # allauth has no types
    field_order = ["oldpassword", "password1", "password2", "revoke_tokens"]

    def clean_oldpassword(self) -> str:
        password: str = self.cleaned_data["oldpassword"]
        if not password_confirmed(self.user, password):
            raise get_adapter().validation_error("enter_current_password")
        return password

    def save(self) -> None:
        super().save()
        self.revoke_for(self.user)


class PasswordResetForm(_RevokesTokens, ResetPasswordKeyForm):  # type: ignore[misc]  # allauth has no types
    field_order = ["password1", "password2", "revoke_tokens"]

    def save(self) -> None:
        super().save()
        self.revoke_for(self.user)
