"""Questions about people and tokens."""

from __future__ import annotations

from uuid import UUID

from allauth.account.models import EmailAddress
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from apps.accounts.models import PersonalToken, User
from apps.errors import NotFound

LONGEST_NAME = 254
"""Of a name that is given to sign in: as long as an address may be."""


def user_of(request: HttpRequest) -> User:
    """Who is signed in, on a page that only signed-in users reach (`login_required`)."""
    assert isinstance(request.user, User)
    return request.user


def users() -> QuerySet[User]:
    """All people, and no accounts of programs. Whether the caller may see them is the caller's to check."""
    return User.objects.filter(is_service=False).select_related("personal_namespace")


def user_by_id(user_id: UUID) -> User:
    """404 where there is none."""
    user = users().filter(pk=user_id).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user


def user_by_name(username: str) -> User:
    """By name, in any capitals. 404 where there is none."""
    user = users().filter(username__iexact=username).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user


def users_reached_by(name: str) -> list[User]:
    """Whose password signing in with this name or address is tried on, those with the address first. Mostly one or
    none; several where the name of one is the address of another, or an address that another had before."""
    text = name.strip()[:LONGEST_NAME]
    if not text or "\0" in text:
        return []
    noted = EmailAddress.objects.filter(email__iexact=text).values("user")
    named = Q(username__iexact=text) | Q(email__iexact=text) | Q(pk__in=noted)
    found = User.objects.filter(named, is_service=False)
    return sorted(found, key=lambda one: (one.email.casefold() != text.casefold(), str(one.pk)))


def users_locked() -> QuerySet[User]:
    """Everybody who is locked out, by name."""
    return User.objects.filter(is_active=False, is_service=False).order_by("username")


def tokens_of(user: User) -> QuerySet[PersonalToken]:
    """The user's own tokens, expired ones too: one sees what has ended."""
    tokens: QuerySet[PersonalToken] = PersonalToken.objects.filter(user=user)
    return tokens


def token_for(user: User, token_id: UUID) -> PersonalToken:
    """One of the user's own; 404 for any other."""
    token = tokens_of(user).filter(pk=token_id).first()
    if token is None:
        raise NotFound("You have no such token.")
    return token
