"""The second factor of signing in: who needs one, who lacks it, that a code counts once, and taking a lost one away.

Factors themselves are allauth's (`allauth.mfa`): an app that shows codes (TOTP), passkeys, recovery codes. Not
here: how many codes may be tried (`attempts`), how their secrets are kept (`portal.second_factor_keys`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa import signals
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from allauth.mfa.utils import decrypt
from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from apps.accounts.models import User
from apps.accounts.open_sockets import sign_ins_changed
from apps.api.outside import problem_response
from apps.api.problems import answer_to
from apps.audit.services import record, second_factor_failure_record
from apps.errors import Conflict, Forbidden

_TYPES = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
_OPEN = ("/accounts/2fa/", "/accounts/reauthenticate/", "/accounts/logout/", "/static/", "/healthz", "/readyz")
"""What a user who lacks the second factor that is required may still ask for: setting it up, and leaving."""


def has_second_factor(user: User) -> bool:
    """Whether signing in takes a second factor. Recovery codes alone are none."""
    return bool(Authenticator.objects.filter(user=user, type__in=_TYPES).exists())


def second_factors_of(user: User) -> list[str]:
    """What the user can confirm a sign-in with, in words. One statement."""
    kinds = Authenticator.objects.filter(user=user, type__in=_TYPES).values_list("type", flat=True)
    words = {Authenticator.Type.TOTP.value: "authenticator app", Authenticator.Type.WEBAUTHN.value: "passkey"}
    return sorted({words[one] for one in kinds})


def needs_second_factor(user: User) -> bool:
    """Whether the portal requires one of this user."""
    rule: str = settings.YARDMASTER_REQUIRE_SECOND_FACTOR
    return rule == "all" or (rule == "administrators" and user.is_staff)


def lacks_second_factor(user: User) -> bool:
    """Whether the user must set one up before anything else. Asks the database only where one is required."""
    return needs_second_factor(user) and not has_second_factor(user)


def may_be_removed(factor: Authenticator) -> bool:
    """Not the last one of a user of whom one is required."""
    others = Authenticator.objects.filter(user=factor.user, type__in=_TYPES).exclude(pk=factor.pk)
    return not needs_second_factor(factor.user) or others.exists()


def refuse_password_alone(user: User) -> None:
    """Raises Forbidden where a name and a password are not enough to get a token."""
    remedy = "Run `yardmaster login` without --password, and confirm the code in a browser."
    if has_second_factor(user):
        raise Forbidden("This account uses two-step sign-in: a password alone gives no token.", remedy, "second_factor")
    if lacks_second_factor(user):
        raise Forbidden(
            "This portal requires two-step sign-in, and this account has not set it up.",
            "Sign in with a browser and set it up on the page Two-step sign-in of your account.",
            "second_factor_required",
        )


def second_factor_reset(*, user: User, actor: User | None) -> int:
    """Take away every factor of a user who has lost them, with the recovery codes; how many there were. `actor` None:
    the operator. Raises Conflict for oneself: the page of the account does that, with a code."""
    if actor is not None and actor.pk == user.pk:
        remedy = "Turn it off on the page Two-step sign-in of your account."
        raise Conflict("You cannot reset your own two-step sign-in.", remedy=remedy)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        kinds = sorted(Authenticator.objects.filter(user=user).values_list("type", flat=True))
        Authenticator.objects.filter(user=user).delete()
        if kinds:
            record(actor, "second_factor.reset", f"user:{user.pk}", name=user.username, kinds=kinds)
    return len(kinds)


# --- A code counts once ----------------------------------------------------------------------------------------------


def code_take(factor: Authenticator, code: str) -> bool:
    """Use a code of an app up: neither it nor an earlier one is taken again, by whichever process."""
    with transaction.atomic():
        row = Authenticator.objects.select_for_update().get(pk=factor.pk)
        secret, last = decrypt(row.data["secret"]), row.data.get("last_counter", -1)
        for counter in yield_hotp_counters_from_time():
            right = format_hotp_value(hotp_value(secret, counter))
            if counter > last and compare_user_code(actual=code, expected=right):
                row.data["last_counter"] = counter
                row.save(update_fields=["data"])
                return True
    return False


class _CodesCountOnce:
    def clean_code(self) -> str:
        code: str = super().clean_code()  # type: ignore[misc]  # of the form that this is mixed into
        factor: Authenticator = self.authenticator  # type: ignore[attr-defined]
        if factor.type == Authenticator.Type.TOTP and not code_take(factor, code):
            raise get_adapter().validation_error("incorrect_code")
        return code


class SignInCodeForm(_CodesCountOnce, AuthenticateForm):  # type: ignore[misc]  # allauth has no types
    """The code while signing in."""


class ConfirmCodeForm(_CodesCountOnce, ReauthenticateForm):  # type: ignore[misc]  # allauth has no types
    """The code of a user who is signed in, before something that matters."""


# --- Led to set one up -----------------------------------------------------------------------------------------------


def _is_open(path: str) -> bool:
    """Also the way back from a provider, at which an account without a password confirms that it may set one up."""
    return path.startswith(_OPEN) or (path.startswith("/accounts/oidc/") and path.endswith("/login/callback/"))


class RequireSecondFactor:
    """Middleware: who is signed in without the second factor that is required gets the page that sets it up, and
    nothing else. Programs with a token have no session: none is made for them without the factor."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_bound = settings.YARDMASTER_REQUIRE_SECOND_FACTOR != "none" and not _is_open(request.path)
        has_cookie = is_bound and settings.SESSION_COOKIE_NAME in request.COOKIES
        if has_cookie and isinstance(request.user, User) and lacks_second_factor(request.user):
            return _lead_there(request)
        return self.get_response(request)


def _lead_there(request: HttpRequest) -> HttpResponse:
    if request.method in ("GET", "HEAD") and not request.path.startswith("/api/"):
        return redirect("mfa_index")
    refused = Forbidden(
        "This portal requires two-step sign-in, and your account has not set it up.",
        "Set it up on the page Two-step sign-in of your account.",
        "second_factor_required",
    )
    return problem_response(request, answer_to(refused))


# --- What is recorded, and how a session was signed in ---------------------------------------------------------------


def way_of(request: HttpRequest, user: User) -> str:
    """How this session was signed in: `password`, `link`, `passkey`, or `oidc:` and the provider; with `+code`,
    `+passkey` or `+recovery_code` where a second factor followed. Empty: unknown."""
    records = [one for one in get_authentication_records(request, user) if not one.get("reauthenticated")]
    first = next((one for one in reversed(records) if one["method"] != "mfa" or one.get("passwordless")), None)
    if first is None:
        return ""
    if first["method"] == "mfa":
        return "passkey"
    way = f"oidc:{first.get('provider', '')}" if first["method"] == "socialaccount" else str(first["method"])
    second = records[-1]
    if second["method"] != "mfa":
        return way[:100]
    words = {Authenticator.Type.TOTP: "code", Authenticator.Type.RECOVERY_CODES: "recovery_code"}
    return f"{way[:80]}+{words.get(second['type'], 'passkey')}"


@receiver(post_save, sender=Authenticator)
def _added(instance: Authenticator, created: bool, **facts: Any) -> None:
    """In the transaction that adds it, which allauth's own signals wait for."""
    if not created:
        return
    if instance.type == Authenticator.Type.RECOVERY_CODES:
        record(instance.user, "second_factor.codes", f"user:{instance.user_id}")
        return
    if instance.type == Authenticator.Type.TOTP:  # the code that set it up does not sign in as well
        instance.data["last_counter"] = max(yield_hotp_counters_from_time())
        instance.save(update_fields=["data"])
    record(instance.user, "second_factor.add", f"user:{instance.user_id}", kind=instance.type, **_name_of(instance))


def _name_of(factor: Authenticator) -> dict[str, Any]:
    return {"name": factor.data["name"]} if factor.type == Authenticator.Type.WEBAUTHN else {}


@receiver(signals.authenticator_removed)
def _removed(user: User, authenticator: Authenticator, **facts: Any) -> None:
    record(user, "second_factor.remove", f"user:{user.pk}", kind=authenticator.type, **_name_of(authenticator))
    sign_ins_changed(user.pk)


@receiver(signals.authenticator_used)
def _used(user: User, authenticator: Authenticator, **facts: Any) -> None:
    """Of each sign-in its event says the way; a recovery code is rare, and one that another used should be seen."""
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        record(user, "second_factor.recovery", f"user:{user.pk}")


@receiver(signals.authentication_failed)
def _failed(user: User, **facts: Any) -> None:
    second_factor_failure_record(user)
