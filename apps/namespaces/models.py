"""Namespaces: what belongs together, who may use it, how much it may take, and what may name one in an address."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.text import slugify
from simple_history.models import HistoricalRecords

from apps.namespaces.quota_models import DefaultQuota as DefaultQuota
from apps.namespaces.quota_models import Kind
from apps.namespaces.quota_models import ScheduledQuota as ScheduledQuota
from apps.namespaces.share_models import PriorityClass as PriorityClass
from apps.namespaces.share_models import ShareNode as ShareNode
from yardmaster.ids import new_id
from yardmaster.queueing import ledger

LONGEST_SLUG = 63
_PATTERN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def is_slug(text: str) -> bool:
    """Whether it is a DNS label that cannot be mistaken for an id: requests name a namespace by either."""
    return bool(_PATTERN.fullmatch(text)) and not is_uuid(text)


def is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def slug_of(name: str) -> str:
    """The slug nearest to a user's name; `user` where nothing of it can stand in an address."""
    slug = slugify(name[:200]).replace("_", "-").strip("-")[: LONGEST_SLUG - 13].strip("-")
    if is_uuid(slug):
        return f"u-{slug}"
    return slug or "user"


class Namespace(models.Model):
    """A personal namespace (one per user, `owner` set) or a team's. The slug is for people and addresses."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(max_length=63, unique=True)
    title = models.CharField(max_length=100, blank=True)
    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="personal_namespace"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True, editable=False)
    """It is being removed, or what was kept of it is an archive: nothing new begins in it."""

    def __str__(self) -> str:
        return self.slug


class Role(models.TextChoices):
    """What a member may do; each role includes the ones before it."""

    VIEWER = "viewer"
    MEMBER = "member"
    MANAGER = "manager"


class Membership(models.Model):
    """A user's role in a namespace. A personal namespace has exactly its owner, as manager."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.MEMBER)
    source = models.CharField(max_length=100, blank=True, default="", db_default="", editable=False)
    """The OpenID provider whose groups it follows, such as `oidc:company`. Empty: a person set it."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "user"], name="one_role_per_member")]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.namespace_id}"


class ServiceAccount(models.Model):
    """The account of a program: a user without password, address and session, whose one membership is that in this
    namespace. What it may is its role there, and less by the scopes of its tokens. The rules are in
    `service_accounts`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="service_account")
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="service_accounts")
    name = models.CharField(max_length=40)
    """Within the namespace: its user is `name@slug`, which no person can be called."""
    description = models.CharField(max_length=200, blank=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True, editable=False)
    """It was deleted, but jobs that it launched are still there and name it."""

    def __str__(self) -> str:
        return f"{self.name} of {self.namespace_id}"


class Quota(models.Model):
    """The most that a namespace may hold at once. None: unlimited. cpu in cores, memory and storage in bytes."""

    namespace = models.OneToOneField(Namespace, primary_key=True, on_delete=models.CASCADE, related_name="quota")
    cpu = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    memory = models.BigIntegerField(null=True, blank=True)
    gpus = models.IntegerField(null=True, blank=True)
    storage = models.BigIntegerField(null=True, blank=True)
    files = models.BigIntegerField(null=True, blank=True)
    """In all versions and uploads together: each has a place in a list that the database keeps."""
    running_jobs = models.IntegerField(null=True, blank=True)
    logs = models.BigIntegerField(null=True, blank=True)
    """Bytes of what its tasks print, within its storage."""
    sessions = models.IntegerField(null=True, blank=True)
    """Sessions of the workbench at once."""
    queued_jobs = models.IntegerField(null=True, blank=True)
    """Jobs that wait at once."""
    extended = models.JSONField(default=dict, blank=True)
    """Limits of other resources, in pieces, by name: `{"amd.com/gpu": 4}`. What is not named: `ledger.Quota.limits`."""
    priority_ceiling = models.IntegerField(default=0, validators=[MinValueValidator(0)])
    """The highest priority with which its jobs count among those of other namespaces."""
    usual = models.JSONField(default=dict, db_default={}, blank=True)
    """Of limits that a scheduled change sets now: what they are without it, by name. `quota_limits` writes it."""
    history = HistoricalRecords(history_change_reason_field=models.CharField(max_length=300, null=True))

    def __str__(self) -> str:
        return f"quota of {self.namespace_id}"


class EngineNamespace(models.Model):
    """What an engine keeps for a namespace (a namespace on a cluster), and how it was last found.

    No foreign key: it outlives the namespace until the engine has released everything. Written by `services`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace_id = models.UUIDField()
    slug = models.CharField(max_length=63)
    """The namespace's, for people who read of it when it is gone."""
    engine = models.CharField(max_length=63)
    goes = models.BooleanField(default=False)
    """It is to be removed; the row goes when the engine says that nothing is left."""
    shaped_at = models.DateTimeField(null=True, blank=True)
    """When it was last found, or put, in order. None: not since the last change."""
    settings_digest = models.CharField(max_length=64, blank=True)
    """Of the engine's options under which that was so."""
    next_look_at = models.DateTimeField(db_index=True)
    setbacks = models.PositiveIntegerField(default=0)
    problem = models.TextField(blank=True)
    """Why the last look failed, and `remedy`; or empty."""
    remedy = models.TextField(blank=True)
    left = models.JSONField(default=list, blank=True)
    """While it goes: what holds its end up, in the engine's words."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace_id", "engine"], name="one_per_engine")]

    def __str__(self) -> str:
        return f"{self.slug} on {self.engine}"


QUANTITY_NAMES = {
    "cpu": ("CPU cores", ""),
    "memory": ("Memory", "bytes"),
    "gpus": ("GPUs", ""),
    "storage": ("Storage", "bytes"),
    "files": ("Files", ""),
    "running_jobs": ("Concurrent jobs", ""),
    "logs": ("Logs", "bytes"),
    "sessions": ("Sessions", ""),
    "queued_jobs": ("Queued jobs", ""),
}
"""What a quota bounds, in words, and its unit: `bytes`, or none for plain numbers."""


LIMIT_NAMES = (*QUANTITY_NAMES, "priority_ceiling")
"""The fields of a quota, but for the other resources by name."""


def kind_of(namespace: Namespace) -> Kind:
    return Kind.TEAM if namespace.owner_id is None else Kind.PERSONAL


def default_limits() -> dict[Kind, dict[str, Any]]:
    """What a new namespace of each kind may hold, by the fields of a quota: as administrators have said, else the
    settings. One statement."""
    said = dict(DefaultQuota.objects.values_list("kind", "limits"))
    return {kind: _fields(said.get(kind, settings.YARDMASTER_DEFAULT_QUOTA)) for kind in Kind}


def _fields(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Every field of a quota. `limits` is flat: what is not named has no limit."""
    found = {name: limits.get(name) for name in LIMIT_NAMES}
    cpu = None if found["cpu"] is None else Decimal(str(found["cpu"]))
    others = {name: limit for name, limit in limits.items() if name not in LIMIT_NAMES and limit is not None}
    return {**found, "cpu": cpu, "priority_ceiling": found["priority_ceiling"] or 0, "extended": others}


def default_quota_create(namespace: Namespace) -> Quota:
    """The namespace's quota row, made from the defaults where it is absent."""
    found = Quota.objects.filter(namespace=namespace).first()
    if found is None:
        limits = default_limits()[kind_of(namespace)]
        found, _ = Quota.objects.get_or_create(namespace=namespace, defaults=limits)
    return found


def default_quotas_create(namespace_ids: Iterable[uuid.UUID]) -> None:
    """The same for many: those that have one keep it. At most three statements."""
    wanted = list(namespace_ids)
    missing = list(Namespace.objects.filter(pk__in=wanted, quota=None))
    if missing:
        limits = default_limits()
        made = [Quota(namespace=one, **limits[kind_of(one)]) for one in missing]
        Quota.objects.bulk_create(made, ignore_conflicts=True)


def limits_of(row: Quota) -> ledger.Quota:
    """A namespace's quota as the core knows it."""
    cpu = None if row.cpu is None else float(row.cpu)
    return ledger.Quota(cpu, row.memory, row.gpus, row.running_jobs, row.priority_ceiling, row.extended)


class Invitation(models.Model):
    """A link by which people make themselves an account, join a team, or both. Only the hash of its token is stored.

    The rules are in `invitations`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    email = models.EmailField(blank=True)
    """Whom it was made for, and where its link was sent. Empty: for anyone with the link."""
    namespace = models.ForeignKey(
        Namespace, null=True, blank=True, on_delete=models.CASCADE, related_name="invitations"
    )
    """The team that one joins by it. None: an account alone."""
    role = models.CharField(max_length=10, choices=Role, default=Role.MEMBER)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitations")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    uses = models.PositiveSmallIntegerField(default=1)
    """How many may use it."""
    used = models.PositiveSmallIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"invitation {self.pk}"


class InvitationUse(models.Model):
    """Who used an invitation. The name stays when the user is removed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    invitation = models.ForeignKey(Invitation, on_delete=models.CASCADE, related_name="used_by")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    username = models.CharField(max_length=150)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.username} used {self.invitation_id}"
