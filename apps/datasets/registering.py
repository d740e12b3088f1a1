"""Datasets that are buckets of other S3 servers: registering one, and asking for another scan of it. Nothing is copied,
so nothing counts against the quota of storage.

Not here: the scan itself (`scanning`), and reading the objects (`apps.buckets.access`).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.buckets.endpoints import endpoint_chosen
from apps.buckets.models import Bucket, State
from apps.datasets.models import Dataset
from apps.dispatch.messages import SCAN_BUCKET, enqueue
from apps.errors import Conflict, Invalid, NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespaces_visible, refuse_closed, require_role
from apps.secrets.models import Kind, Secret
from apps.secrets.selectors import secrets_of
from apps.uploads.versioned.services import checked_name
from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten
from yardmaster.storage.base import KeyRefused, key_segments

FAILED_FOR = timedelta(days=1)
"""How long a registration that failed is shown with its reason."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_REGION = re.compile(r"[a-z0-9-]{1,63}", re.ASCII)


def bucket_register(
    *,
    namespace: Namespace,
    user: User,
    name: str,
    bucket: str,
    secret: str,
    prefix: str = "",
    endpoint: str = "",
    region: str = "us-east-1",
) -> Bucket:
    """Begin to make the bucket, or a folder in it, a dataset of this name. Its first version is there when the scan has
    ended. Raises `Invalid` and `Conflict`."""
    require_role(user, namespace, Role.MEMBER)
    prefix = prefix.strip("/")
    _refuse_bad(bucket, prefix, region)
    keys = _keys_named(namespace, secret, user)
    now = timezone.now()
    found = Bucket(
        namespace=namespace, endpoint=endpoint_chosen(user, endpoint), bucket=bucket, prefix=prefix, region=region,
        secret=keys, name=checked_name(name), created_by=user, created_at=now, asked_by=user, started_at=now,
        next_look_at=now,
    )  # fmt: skip
    with transaction.atomic():
        refuse_closed(Namespace.objects.select_for_update().get(pk=namespace.pk))
        _refuse_taken(found)
        _refuse_many(namespace)
        found.save(force_insert=True)
        facts = {"address": found.address, "endpoint": found.endpoint, "secret": secret, "name": found.name}
        record(user, "bucket.register", f"bucket:{found.pk}", namespace=namespace, **facts)
        enqueue(SCAN_BUCKET, found.pk)
    return found


def bucket_rescan(*, bucket: Bucket, user: User, secret: str = "") -> Bucket:
    """List the bucket again, from now on with the credentials `secret` if it is named. A version is made only where
    something has changed. One that is under way is not begun twice. Raises `Invalid` and `Conflict`."""
    require_role(user, bucket.namespace, Role.MEMBER)
    refuse_closed(bucket.namespace)
    keys = _keys_named(bucket.namespace, secret, user) if secret else None
    now = timezone.now()
    with transaction.atomic():
        Namespace.objects.select_for_update().get(pk=bucket.namespace_id)
        if Bucket.objects.filter(pk=bucket.pk).exclude(state=State.SCANNING).exists():
            _refuse_many(bucket.namespace)
        earlier = Bucket.objects.filter(pk=bucket.pk).values_list("secret__name", flat=True).first() or ""
        if keys is not None and Bucket.objects.filter(pk=bucket.pk).exclude(secret=keys).update(secret=keys):
            facts = {"address": bucket.address, "secret": secret, "secret_before": earlier}
            record(user, "bucket.secret", f"bucket:{bucket.pk}", namespace=bucket.namespace, **facts)
        idle = Bucket.objects.filter(pk=bucket.pk).exclude(state=State.SCANNING)
        if idle.update(
            state=State.SCANNING, asked_by=user, problem=None, scanned=0, scanned_bytes=0, last_path="", failures=0,
            left_out=0, left_out_first=[], started_at=now, ended_at=None, next_look_at=now,
        ):  # fmt: skip
            record(user, "bucket.rescan", f"bucket:{bucket.pk}", namespace=bucket.namespace, address=bucket.address)
            enqueue(SCAN_BUCKET, bucket.pk)
    bucket.refresh_from_db()
    return bucket


def buckets_visible(user: User) -> QuerySet[Bucket]:
    """Those in the user's namespaces."""
    rows = Bucket.objects.filter(namespace__in=namespaces_visible(user))
    return rows.select_related("namespace", "secret", "created_by")


def bucket_for(user: User, bucket_id: UUID) -> Bucket:
    """Raises `NotFound`."""
    found = buckets_visible(user).filter(pk=bucket_id).first()
    if found is None:
        raise NotFound()
    return found


def bucket_of(dataset: Dataset) -> Bucket | None:
    """Where the dataset lies, if it was registered and not uploaded."""
    return Bucket.objects.select_related("namespace", "secret").filter(dataset_id=dataset.pk).first()


def datasets_using(secret_id: UUID) -> list[str]:
    """The names of datasets that are read with these credentials."""
    return list(Bucket.objects.filter(secret=secret_id).order_by("name").values_list("name", flat=True)[:50])


def buckets_forget(now: datetime) -> int:
    """Forget buckets whose dataset was deleted, and, after `FAILED_FOR`, those whose first scan failed. Returns how
    many."""
    gone = Bucket.objects.filter(dataset_id__isnull=False).exclude(state=State.SCANNING)
    never = Bucket.objects.filter(dataset_id__isnull=True, state=State.FAILED, ended_at__lte=now - FAILED_FOR)
    return int(gone.exclude(dataset_id__in=Dataset.objects.values("pk")).delete()[0]) + int(never.delete()[0])


def credentials_for(user: User, namespace: Namespace) -> QuerySet[Secret]:
    """Those with which the user may register buckets."""
    kinds = [Kind.S3, Kind.S3_ADMIN] if user.is_staff else [Kind.S3]
    return secrets_of(namespace).filter(kind__in=kinds)


def _keys_named(namespace: Namespace, name: str, user: User) -> Secret:
    """Raises `Invalid`."""
    keys = credentials_for(user, namespace).filter(name=name).first()
    if keys is None:
        message = f"{namespace.slug} has no bucket credentials of this name."
        remedy = f"Create them, for instance with `yardmaster secrets set {shorten(name) or 'BUCKET'} --bucket-keys`."
        raise Invalid([Problem("secret", "unknown_secret", message, remedy, shorten(name))])
    return keys


def _refuse_bad(bucket: str, prefix: str, region: str) -> None:
    found: list[Any] = []
    if not _BUCKET.fullmatch(bucket):
        message = "A bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens."
        found.append(Problem("bucket", "invalid", message, "Write its name as the store shows it.", shorten(bucket)))
    if not _REGION.fullmatch(region):
        remedy = "Write for instance us-east-1, which most servers take."
        found.append(Problem("region", "invalid", "This is no region.", remedy, shorten(region)))
    try:
        if prefix:
            key_segments(f"{prefix}/x")
    except KeyRefused as error:
        found.append(Problem("prefix", "invalid", error.message, "Write a folder of the bucket.", shorten(prefix)))
    if len(prefix) > 512:
        found.append(Problem("prefix", "too_long", "A prefix has at most 512 characters.", "Use a shorter one."))
    if found:
        raise Invalid(found)


def _refuse_taken(bucket: Bucket) -> None:
    same = {"namespace": bucket.namespace, "name": bucket.name}
    waiting = Bucket.objects.filter(**same, dataset_id__isnull=True, state=State.SCANNING)
    if Dataset.objects.filter(**same).exists() or waiting.exists():
        detail = f"The name {bucket.name!r} already exists in {bucket.namespace.slug}."
        raise Conflict(detail, "name_taken", remedy="Choose another name, or scan the dataset of this name again.")


def _refuse_many(namespace: Namespace) -> None:
    most: int = settings.YARDMASTER_OPEN_UPLOADS_PER_NAMESPACE
    if Bucket.objects.filter(namespace=namespace, state=State.SCANNING).count() >= most:
        detail = f"{most} buckets of {namespace.slug} are being scanned."
        raise Conflict(detail, "too_many_scans", remedy="Wait until some have ended.")
