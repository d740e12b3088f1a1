"""Questions about people and tokens."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from apps.accounts.models import PersonalToken, User
from apps.api.problems import NotFound


def users() -> QuerySet[User]:
    """Everybody. Whether the caller may see them is the caller's to check."""
    return User.objects.select_related("personal_namespace")


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


def users_locked() -> QuerySet[User]:
    """Everybody who is locked out, by name."""
    return User.objects.filter(is_active=False).order_by("username")


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
