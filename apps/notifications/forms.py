"""What people choose to be told."""

from __future__ import annotations

from django import forms

from apps.notifications.models import MailChoices, WaitLimit


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
