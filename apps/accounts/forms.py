"""What people type into the pages of their account."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from zoneinfo import available_timezones

from django import forms

from apps.accounts.models import User

_LIFETIMES = {
    "week": ("7 days", timedelta(days=7)),
    "month": ("30 days", timedelta(days=30)),
    "quarter": ("90 days", timedelta(days=90)),
    "year": ("a year", timedelta(days=365)),
    "ever": ("until it is revoked", None),
}
SCOPE_WORDS = {
    "read": "See everything that you see. Change nothing.",
    "jobs": "Launch, stop, retry and delete jobs.",
    "data": "Upload, rename and delete datasets and code.",
    "admin": "Change members, and whatever else an administrator may, if you are one.",
}


class ProfileForm(forms.Form):
    first_name = forms.CharField(label="First name", max_length=150, required=False)
    last_name = forms.CharField(label="Last name", max_length=150, required=False)
    time_zone = forms.CharField(label="Time zone", max_length=64, required=False)

    def clean_time_zone(self) -> str:
        zone: str = self.cleaned_data["time_zone"]
        if zone and zone not in _zones():
            raise forms.ValidationError("There is no such zone: write it like Europe/Berlin, or leave it empty.")
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
    lifetime = forms.ChoiceField(
        label="Good for", choices=[(key, words) for key, (words, _) in _LIFETIMES.items()], initial="quarter"
    )

    def clean(self) -> dict[str, object]:
        if self.cleaned_data.get("reach") == "scopes" and not self.cleaned_data.get("scopes"):
            self.add_error("scopes", "Tick what the token may do, or choose everything.")
        return self.cleaned_data

    def chosen_scopes(self) -> list[str]:
        return [] if self.cleaned_data["reach"] == "all" else list(self.cleaned_data["scopes"])

    def expires_in(self) -> timedelta | None:
        return _LIFETIMES[self.cleaned_data["lifetime"]][1]
