"""Users, their browsers and networks, their personal tokens and one-time sign-in links, programs that ask to be signed
in; and the signals of what happens to a user.

Not here: who may do what in a namespace (`apps.namespaces`).
"""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Lower
from django.dispatch import Signal
from django.utils.crypto import salted_hmac
from knox.models import AbstractAuthToken

from apps.accounts.hashing import slots
from yardmaster.ids import new_id


class User(AbstractUser):  # type: ignore[django-manager-missing]  # knox's related manager has no type
    """A person, or the account of a program (`is_service`). `is_staff` makes an administrator of the portal."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    sign_in_epoch = models.PositiveIntegerField(default=0, editable=False)
    """Counted up to end every session at once; sessions of an earlier epoch are dead."""
    time_zone = models.CharField(max_length=64, blank=True)
    """In which zone pages say times, by its IANA name. Empty: as the browser does."""

    pending_email = models.EmailField(blank=True, default="", editable=False)
    """An address that its reader has not confirmed yet. Nothing uses it."""
    pending_email_at = models.DateTimeField(null=True, blank=True, editable=False)
    """When the last mail that asks for confirmation was sent."""
    is_service = models.BooleanField(default=False, db_default=False, editable=False)
    """A program's: it has no password, no address, no session and no namespace of its own (`apps.namespaces` says which
    it works in), and is none of the people that lists show."""
    service_made_by = models.CharField(max_length=150, blank=True, default="", db_default="", editable=False)
    """The name of the person who made the account of a program."""

    administrator_by = models.CharField(max_length=100, blank=True, default="", db_default="", editable=False)
    """The OpenID provider whose group made an administrator of this user, and takes it away again. Empty: a person."""

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(is_service=False) | Q(is_staff=False, is_superuser=False, email=""),
                name="no_service_is_administrator",
            ),
            # Sign-in ignores case, so two names that differ only by case would be one person to the portal.
            models.UniqueConstraint(Lower("username"), name="one_user_per_name"),
            models.UniqueConstraint(Lower("email"), condition=~Q(email=""), name="one_user_per_email"),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        """In one transaction with what other apps make of it (`apps.namespaces.personal`)."""
        with transaction.atomic(using=kwargs.get("using")):
            super().save(*args, **kwargs)

    def set_password(self, raw_password: str | None) -> None:
        with slots().one():
            super().set_password(raw_password)

    def check_password(self, raw_password: str | None) -> bool:
        """Raises `TooMany` where too many are being checked."""
        with slots().one():
            return super().check_password(raw_password)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        salt = "apps.accounts.models.User.session"
        value = f"{self.password}:{self.sign_in_epoch}"
        if self.is_service:  # another each time: no session of a program's account is ever alive
            value = secrets.token_hex(16)
        return salted_hmac(salt, value, secret=secret, algorithm="sha256").hexdigest()


class PersonalToken(AbstractAuthToken):  # type: ignore[misc]  # knox has no types
    """A credential for scripts. Only its hash is stored. Without `scopes` it may do what its owner may."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    digest = models.CharField(max_length=128, unique=True, editable=False)
    name = models.CharField(max_length=100)
    scopes = models.JSONField(default=list, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    """To the minute: writing at every request would make each read a write."""
    made_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    """Who made a token of a program's account. None: the owner, or a user who was removed."""
    made_by_name = models.CharField(max_length=150, blank=True, default="", db_default="", editable=False)

    def __str__(self) -> str:
        return f"{self.name} of {self.user_id}"


class Browser(models.Model):
    """A session that is signed in, with what its user recognises it by. It goes when the session goes.

    Not allauth's `usersessions`: that writes at every request, and knows no sign-in by link.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    session = models.OneToOneField("sessions.Session", on_delete=models.CASCADE, related_name="browser")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="browsers")
    agent = models.CharField(max_length=300, blank=True)
    """What the browser calls itself."""
    address = models.GenericIPAddressField(null=True, blank=True)
    way = models.CharField(max_length=120, blank=True, default="", db_default="")
    """How the session was signed in, as `second_factor.way_of` says it."""
    signed_in_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    """To the minute, like a token's last use."""

    def __str__(self) -> str:
        return f"browser of {self.user_id}"


class KnownNetwork(models.Model):
    """A network (see `apps.api.addresses`) that signed in to an account: guesses from there are counted apart."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="known_networks")
    network = models.CharField(max_length=64)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "network"], name="one_row_per_user_and_network")]

    def __str__(self) -> str:
        return f"{self.network} of {self.user_id}"


class SignInLink(models.Model):
    """A link that signs its user in once, within minutes. Only the hash of its token is stored."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"sign-in link of {self.user_id}"


class DeviceSignIn(models.Model):
    """A program that asks to be signed in: until a user has decided on a page, and it has collected its token.

    Of both codes only a hash is stored. The rules are in `device`.
    """

    class Decision(models.TextChoices):
        CONFIRMED = "confirmed"
        REFUSED = "refused"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    device_digest = models.CharField(max_length=64, unique=True, editable=False)
    user_digest = models.CharField(max_length=64, unique=True, editable=False)
    client_id = models.CharField(max_length=100, blank=True)
    """Which program it says it is. The same must collect the token."""
    name = models.CharField(max_length=100)
    """What the token will be called, such as `yardmaster on laptop`."""
    agent = models.CharField(max_length=200, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)
    scopes = models.JSONField(default=list, blank=True)
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    interval = models.PositiveSmallIntegerField()
    """Seconds between two polls. More, once it was faster."""
    polled_at = models.DateTimeField(null=True, blank=True)
    decision = models.CharField(max_length=9, choices=Decision.choices, blank=True)
    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.CASCADE, related_name="device_sign_ins")
    """Who decided."""
    collected_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"sign-in of {self.name}"


# What other apps do when something happens to a user. Receivers run in the transaction in which it happens; where one
# raises, nothing has happened. That a user was made is Django's `post_save`.
user_activated = Signal()
"""`user` may sign in again."""
user_deactivated = Signal()
"""`user` was locked: all sessions and tokens have ended."""
user_leaving = Signal()
"""`user` is about to be locked out for good, or deleted. A receiver that must not let that happen raises `Conflict`."""
groups_claimed = Signal()
"""An OpenID provider says at a sign-in of `user` which `groups` it has; `mapping` says which teams they give, `source`
names the provider."""
user_deleting = Signal()
"""`user` is about to be deleted: receivers delete what is theirs. Raises `ProtectedError` where that is in use."""
