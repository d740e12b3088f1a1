"""Passkeys: what of a browser's answer is believed, how many one account has, and which may be taken away.

allauth and fido2 check challenge, host and signature. Added here: the answer is to a page of the portal itself; signing
in without a password takes a passkey that has verified its user, whichever challenge it answers; a challenge is
answered once; a passkey whose counter goes back is a copy; malformed answers are refused, and nothing but what is
needed is kept. Not here: the pages (`passkey_pages`).
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Any
from urllib.parse import urlsplit

from allauth.mfa.base.internal.flows import delete_and_cleanup
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from allauth.mfa.webauthn.internal import auth
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from django import forms
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from apps.accounts.models import User
from apps.accounts.second_factor import may_be_removed
from apps.audit.services import record, second_factor_failure_record
from apps.errors import Conflict

MOST = 20
"""Passkeys of one account."""
LONGEST_NAME = 100
_LONGEST_ANSWER = 32_768
_MALFORMED = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError,
    UnsupportedAlgorithm, ValueError, struct.error,
)  # fmt: skip
"""What parsers of fido2 and cryptography raise at bytes that a hostile browser made up."""
_REFUSED = "This passkey was not accepted. Try again, or use another way."


def passkeys_work() -> bool:
    """Whether browsers offer passkeys at the portal's address: a name over HTTPS, or `localhost`."""
    address = urlsplit(settings.PUBLIC_URL)
    host = address.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return address.scheme == "https" or host == "localhost" or host.endswith(".localhost")
    return False


def _is_from_here(origin: str) -> bool:
    # fido2 asks for the host alone. Sessions of the workbench may be served at another port of it, and run what users
    # wrote: what a browser answers to their pages must not sign in here.
    here = urlsplit(settings.PUBLIC_URL)
    port = {"http": 80, "https": 443}.get(here.scheme)
    netloc = here.netloc.removesuffix(f":{port}") if here.port == port else here.netloc
    return origin == f"{here.scheme}://{netloc}"


class AnswerField(forms.JSONField):
    """What a browser's passkey answered, as text in a hidden field."""

    def __init__(self) -> None:
        super().__init__(widget=forms.HiddenInput, error_messages={"required": _REFUSED, "invalid": _REFUSED})

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > _LONGEST_ANSWER:
            raise forms.ValidationError(_REFUSED)
        try:
            found = super().to_python(value)
        except RecursionError as error:
            raise forms.ValidationError(_REFUSED) from error
        if found is not None and not isinstance(found, dict):
            raise forms.ValidationError(_REFUSED)
        return found


# --- Using one -------------------------------------------------------------------------------------------------------


class _Checked(forms.Form):
    user: User | None

    def clean_credential(self) -> Authenticator:
        answer = self.cleaned_data["credential"]
        try:
            factor: Authenticator = super().clean_credential()  # type: ignore[misc]  # of the form this is mixed into
            said = auth.parse_authentication_response(answer).response
            is_right = _is_from_here(said.client_data.origin) and _is_verified_enough(self, said.authenticator_data)
            is_right = is_right and _counts_up(factor, said.authenticator_data.counter)
        except (*_MALFORMED, forms.ValidationError):
            is_right = False
        finally:
            auth.clear_state()
        if not is_right:
            if self.user is not None:
                second_factor_failure_record(self.user)
            raise forms.ValidationError(_REFUSED)
        return factor


def _is_verified_enough(form: Any, said: Any) -> bool:
    # The challenge may be one that was made for a second step, which asks for less.
    return bool(said.is_user_verified()) or not form.passwordless


def _counts_up(factor: Authenticator, counter: int) -> bool:
    """Note the counter of a passkey that has one. False: it went back, so that there are two of it."""
    with transaction.atomic():
        row = Authenticator.objects.select_for_update().get(pk=factor.pk)
        last = row.data.get("counter", 0)
        if (counter or last) and counter <= last:
            return False
        if counter != last:
            row.data["counter"] = counter
            row.save(update_fields=["data"])
    return True


class PasskeySecondForm(_Checked, AuthenticateWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    """After the password."""

    credential = AnswerField()


class PasskeySignInForm(_Checked, LoginWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    """Instead of the password."""

    credential = AnswerField()


class PasskeyConfirmForm(_Checked, ReauthenticateWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    """Of a user who is signed in, before something that matters."""

    credential = AnswerField()


# --- Adding, renaming, removing --------------------------------------------------------------------------------------


class PasskeyAddForm(AddWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    name = forms.CharField(label="Name", max_length=LONGEST_NAME, required=False)
    credential = AnswerField()
    passwordless = forms.BooleanField(required=False, initial=True)

    def clean(self) -> dict[str, Any]:
        try:
            cleaned: dict[str, Any] = super().clean()
            if answer := cleaned.get("credential"):
                said = auth.parse_registration_response(answer).response
                if not (_is_from_here(said.client_data.origin) and _has_key(said.attestation_object.auth_data)):
                    raise forms.ValidationError(_REFUSED)
                cleaned["credential"] = _kept_of(answer)
        except (*_MALFORMED, forms.ValidationError) as error:
            raise forms.ValidationError(_REFUSED) from error
        finally:
            auth.clear_state()
        return cleaned


def _has_key(facts: Any) -> bool:
    """Whether its public key is one that signatures can be checked with. Raises what is malformed."""
    try:
        facts.credential_data.public_key.verify(b"", b"")
    except InvalidSignature:
        return True
    return False


def _kept_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What later sign-ins are checked against, and whether the passkey knows its user."""
    resident = (answer.get("clientExtensionResults") or {}).get("credProps", {}).get("rk")
    return {
        "id": str(answer["id"]),
        "rawId": str(answer["rawId"]),
        "type": "public-key",
        "response": {name: str(answer["response"][name]) for name in ("clientDataJSON", "attestationObject")},
        "clientExtensionResults": {"credProps": {"rk": resident is True}},
    }


class PasskeyNameForm(forms.Form):
    name = forms.CharField(label="Name", max_length=LONGEST_NAME)

    def __init__(self, *args: Any, instance: Authenticator, **options: Any) -> None:
        self.instance = instance
        super().__init__(*args, **{**options, "initial": {"name": instance.wrap().name}})

    def save(self) -> Authenticator:
        return passkey_rename(self.instance, self.cleaned_data["name"])


def passkeys_refuse_many(user: User) -> None:
    """Raises Conflict for a passkey more than one account may have. In the transaction that adds it."""
    User.objects.select_for_update().get(pk=user.pk)
    if Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN).count() >= MOST:
        raise Conflict(
            f"You have {MOST} passkeys, as many as are allowed.", "too_many_passkeys", remedy="Remove one first."
        )


def passkey_rename(factor: Authenticator, name: str) -> Authenticator:
    """Give it another name. The same name again changes nothing."""
    with transaction.atomic():
        row: Authenticator = Authenticator.objects.select_for_update().get(pk=factor.pk)
        before = row.data["name"]
        if name != before:
            row.data["name"] = name
            row.save(update_fields=["data"])
            record(row.user, "second_factor.rename", f"user:{row.user_id}", name=name, name_before=before)
    return row


def passkey_remove(request: HttpRequest, factor: Authenticator) -> None:
    """Take it away, and the recovery codes with the last factor. Raises Conflict for the last one of a user of whom one
    is required. Already gone: success."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=factor.user_id)  # of two requests at once, one sees the other's
        found = Authenticator.objects.filter(pk=factor.pk).first()
        if found is None:
            return
        if not may_be_removed(found):
            raise Conflict(
                "This portal requires two-step sign-in, and this passkey is your only second step.",
                "second_factor_required",
                remedy="Add another passkey or an authenticator app first.",
            )
        delete_and_cleanup(request, found)
