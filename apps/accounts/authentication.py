"""How a request of the API says who sends it: a personal token, or the session of the pages."""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from knox.crypto import hash_token
from knox.settings import CONSTANTS
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from apps.accounts.models import PersonalToken, User
from apps.accounts.use_notes import best_effort
from apps.api.problems import ApiProblem
from apps.audit.services import record

SCHEME = "Bearer"
LONGEST_TOKEN = 200
NO_TOKEN = "The Authorization header contains no personal token."
UNKNOWN_TOKEN = "This token is unknown, expired or revoked."
_FORM = re.compile("(?:ym_)?[0-9a-f]{64}")
_COARSE = timedelta(minutes=1)


class PersonalTokenAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer <personal token>`. `request.auth` is then the `PersonalToken`.

    The token is looked up by its beginning and compared by its hash in constant time. knox's own class is not used: it
    deletes expired tokens while it reads, and raises UnicodeDecodeError for bytes that are no text.
    """

    def authenticate(self, request: Request) -> tuple[User, PersonalToken] | None:
        parts = authentication.get_authorization_header(request).split()
        if not parts or parts[0].lower() != SCHEME.lower().encode():
            return None
        if len(parts) != 2 or len(parts[1]) > LONGEST_TOKEN or not parts[1].isascii():
            raise exceptions.AuthenticationFailed(NO_TOKEN)
        token = token_behind(parts[1])
        if token is None:
            raise exceptions.AuthenticationFailed(UNKNOWN_TOKEN)
        _note_use(token)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


def live_tokens() -> QuerySet[PersonalToken]:
    """Tokens that are neither expired nor revoked, of active users."""
    return _unexpired().filter(user__is_active=True).select_related("user")


def _unexpired() -> QuerySet[PersonalToken]:
    found: QuerySet[PersonalToken] = PersonalToken.objects.filter(Q(expiry=None) | Q(expiry__gt=timezone.now()))
    return found


def has_form_of_token(text: str) -> bool:
    """Whether this may be a token at all. What has not the form of one is never looked up."""
    return _FORM.fullmatch(text) is not None


def token_behind(secret: bytes) -> PersonalToken | None:
    """The live token of an active user, or None: unknown, expired and revoked sound the same."""
    text = secret.decode("ascii")
    if not has_form_of_token(text):
        return None
    digest = hash_token(text)
    candidates = live_tokens().filter(token_key=_key_of(text))
    return next((token for token in candidates if hmac.compare_digest(digest, token.digest)), None)


def users_behind(secrets: Collection[str]) -> dict[str, UUID | None]:
    """By secret, the ids of the users behind those of them that are tokens; None where the user is locked, who may be
    let in again. What is missing was never one, or is one no longer. One query, for many at a time."""
    asked = [text for text in secrets if has_form_of_token(text)]
    rows = _unexpired().filter(token_key__in={_key_of(text) for text in asked})
    found = {digest: user if is_active else None
             for digest, user, is_active in rows.values_list("digest", "user_id", "user__is_active")}  # fmt: skip
    return {text: found[digest] for text in asked if (digest := hash_token(text)) in found}


def _key_of(text: str) -> str:
    return text[: CONSTANTS.TOKEN_KEY_LENGTH]


def _note_use(token: PersonalToken) -> None:
    """Its first use is recorded, or the request fails. Later uses are noted once a minute at most, and may be lost."""
    now, before = timezone.now(), token.last_used_at
    if before is not None and now - before < _COARSE:
        return
    token.last_used_at = now
    same = PersonalToken.objects.filter(pk=token.pk)
    if before is None:
        with transaction.atomic():
            if same.filter(last_used_at=None).update(last_used_at=now):
                record(token.user, "token.first_use", f"token:{token.pk}", name=token.name)
                return
    with best_effort("The use of a token"):
        same.update(last_used_at=now)


class SessionAuthentication(authentication.SessionAuthentication):
    """The session cookie, with CSRF: the same as the framework's, but its refusal has a code of its own."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise ApiProblem(
                403,
                "csrf_failed",
                str(error.detail),
                remedy="Send the cookie's CSRF token in the header X-CSRFToken, or use a personal token.",
            ) from error
