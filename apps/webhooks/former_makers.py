"""What people who no longer manage a namespace have made in it, and still works: webhooks, and tokens of its service
accounts. It continues, since programs depend on it; the managers see it, and revoke it or answer for it themselves.

Scoped personal tokens are not here: they have the rights that their owner has at each request. Nor are the mails
(`apps.notifications.former_managers`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.accounts.models import PersonalToken, User
from apps.audit.services import record
from apps.errors import NotFound
from apps.namespaces.models import Membership, Namespace, Role, ServiceAccount
from apps.namespaces.service_accounts import service_token_revoke
from apps.webhooks.models import Webhook
from apps.webhooks.services import deliveries_drop

MOST_SHOWN = 200
REMOVED = "a removed user"


@dataclass
class Left:
    """What one former manager has left. `maker_id` None: of all whose accounts were removed."""

    maker_id: UUID | None
    name: str
    webhooks: list[Webhook] = field(default_factory=list)
    tokens: list[PersonalToken] = field(default_factory=list)

    @property
    def words(self) -> str:
        return f"made by {self.name}, who is no longer a manager"


def managers_among(namespace: Namespace, user_ids: Iterable[UUID]) -> set[UUID]:
    """Those of the users who may manage the namespace now: its managers and administrators who can sign in."""
    return set(_managing(namespace).filter(pk__in=set(user_ids)).values_list("pk", flat=True))


def _managing(namespace: Namespace) -> QuerySet[User]:
    mine = Membership.objects.filter(namespace=namespace, role=Role.MANAGER).values("user_id")
    found: QuerySet[User] = User.objects.filter(Q(is_staff=True) | Q(pk__in=mine), is_active=True)
    return found


def left_by_former(namespace: Namespace) -> list[Left]:
    """By maker, sorted by name, `MOST_SHOWN` of each kind at most. Two queries."""
    found: dict[UUID | None, Left] = {}
    for hook in _webhooks(namespace)[:MOST_SHOWN]:
        name = hook.created_by.username if hook.created_by else REMOVED
        found.setdefault(hook.created_by_id, Left(hook.created_by_id, name)).webhooks.append(hook)
    for token in _tokens(namespace)[:MOST_SHOWN]:
        maker = _maker_of(token)
        found.setdefault(maker, Left(maker, _name_of(token))).tokens.append(token)
    return sorted(found.values(), key=lambda one: (one.maker_id is None, one.name.casefold()))


def left_revoke(*, namespace: Namespace, maker_id: UUID | None, actor: User) -> tuple[int, int]:
    """Switch the webhooks of this former manager off, and revoke the tokens; how many of each. May be repeated. Raises
    NotFound for a maker who manages the namespace, and for one who has left nothing."""
    left = _left_by(namespace, maker_id)
    with transaction.atomic():
        for hook in left.webhooks:
            _switch_off(hook, actor)
        for token in left.tokens:
            service_token_revoke(token=token, actor=actor, namespace=namespace)
    return len(left.webhooks), len(left.tokens)


def left_keep(*, namespace: Namespace, maker_id: UUID | None, actor: User) -> None:
    """Let it continue, with the actor as its maker from now on. Raises NotFound as above."""
    left = _left_by(namespace, maker_id)
    with transaction.atomic():
        hooks = Webhook.objects.filter(pk__in=[one.pk for one in left.webhooks]).update(created_by=actor)
        tokens = PersonalToken.objects.filter(pk__in=[one.pk for one in left.tokens])
        count = tokens.update(made_by=actor, made_by_name=actor.username)
        facts = {"webhooks": hooks, "tokens": count, "maker": actor.username, "maker_before": left.name}
        record(actor, "namespace.answer_for", f"namespace:{namespace.pk}", namespace=namespace, **facts)


def _left_by(namespace: Namespace, maker_id: UUID | None) -> Left:
    found = next((one for one in left_by_former(namespace) if one.maker_id == maker_id), None)
    if found is None:
        raise NotFound("This user has no webhooks or tokens here, or manages the namespace again.")
    return found


def _webhooks(namespace: Namespace) -> QuerySet[Webhook]:
    """Whose makers do not manage it."""
    is_left = Q(created_by=None) | ~Q(created_by__in=_managing(namespace).values("pk"))
    found = Webhook.objects.filter(is_left, namespace=namespace, is_active=True)
    return found.select_related("created_by").defer("sealed").order_by("pk")


def _tokens(namespace: Namespace) -> QuerySet[PersonalToken]:
    """The same, with the maker as `_maker_of` says it."""
    accounts = ServiceAccount.objects.filter(namespace=namespace, ended_at__isnull=True).values("user_id")
    managing = _managing(namespace).values("pk")
    of_account = Q(made_by=None, made_by_name="", user__service_account__made_by__in=managing)
    found: QuerySet[PersonalToken] = PersonalToken.objects.filter(user_id__in=accounts)
    found = found.exclude(pk__in=found.filter(Q(made_by__in=managing) | of_account).values("pk"))
    return found.select_related("user", "user__service_account", "made_by").order_by("pk")


def _maker_of(token: PersonalToken) -> UUID | None:
    """Of a token from before makers were noted: who made its account."""
    is_noted = token.made_by_id is not None or token.made_by_name
    maker: UUID | None = token.made_by_id if is_noted else token.user.service_account.made_by_id
    return maker


def _name_of(token: PersonalToken) -> str:
    if token.made_by is not None:
        return str(token.made_by.username)
    return token.made_by_name or token.user.service_made_by or REMOVED


def _switch_off(hook: Webhook, actor: User) -> None:
    locked = Webhook.objects.select_for_update().select_related("namespace").filter(pk=hook.pk, is_active=True).first()
    if locked is None:
        return
    locked.is_active, locked.off_reason = False, ""
    locked.save(update_fields=["is_active", "off_reason"])
    deliveries_drop(locked, "The webhook was switched off.")
    subject, facts = f"webhook:{locked.pk}", {"is_active": False, "is_active_before": True}
    record(actor, "webhook.change", subject, namespace=locked.namespace, **facts)
