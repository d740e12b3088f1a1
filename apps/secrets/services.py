"""Changes of secrets. Every verb writes its audit event in its own transaction; no event, error or log line contains a
value.

Not here: who may call it (the views ask `namespaces.selectors`), which jobs are still running (`apps.jobs`), and giving
values to tasks (`delivery`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone

from apps.accounts.models import User
from apps.api.allowances import take
from apps.audit.services import record
from apps.errors import Conflict, Forbidden, Invalid, TooMany
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import refuse_closed
from apps.secrets.delivery import belongs_to, opened
from apps.secrets.models import Kind, Secret
from apps.secrets.sealing import is_current, seal
from yardmaster.allowances import Allowance, Taking
from yardmaster.errors import Problem
from yardmaster.job.spec_limits import is_text, shorten
from yardmaster.job.spec_secrets import SECRET_NAME
from yardmaster.quantity import some_of

resealing = Signal()
"""Everything that was sealed is to be sealed again with the present key. A receiver does so for its own rows, some at
a time, and returns how many and those that do not open."""
LARGEST = 64 << 10
"""Bytes of one value."""
_MINUTE = 60
_AT_ONCE = 200


def secret_set(
    *,
    namespace: Namespace,
    name: str,
    value: str,
    actor: User,
    description: str | None = None,
    kind: Kind = Kind.TEXT,
) -> tuple[Secret, bool]:
    """Create the secret, or give it another value. Whether it is new. `description` None: stays as it is."""
    _refuse_bad(name, value, description or "")
    if kind is Kind.S3_ADMIN and not actor.is_staff:
        raise Forbidden(
            f"{shorten(name)} holds, or would hold, keys that only administrators may set.",
            "Use the kind s3 and another name, or ask an administrator.",
        )
    _refuse_often(actor)
    now = timezone.now()
    with transaction.atomic():
        locked = Namespace.objects.select_for_update().get(pk=namespace.pk)
        refuse_closed(locked)
        secret = Secret.objects.filter(namespace=namespace, name=name).first()
        is_new = secret is None
        if secret is None:
            _refuse_full(namespace)
            secret = Secret(namespace=namespace, name=name, kind=kind, created_at=now, created_by=actor)
        elif secret.kind != kind:
            raise Conflict(f"{name} is a secret of the kind {secret.kind}.", remedy="Choose another name.")
        content = value.encode()
        secret.sealed, secret.key_id = seal(content, belongs_to(secret))
        secret.size = len(content)
        secret.changed_at, secret.changed_by = now, actor
        if description is not None:
            secret.description = description
        secret.save(force_insert=is_new)
        action = "secret.create" if is_new else "secret.change"
        record(actor, action, f"secret:{secret.pk}", namespace=namespace, name=name)
    return secret, is_new


def secret_delete(*, secret: Secret, actor: User, used_by: Sequence[str] = (), force: bool = False) -> None:
    """Delete the secret. `used_by`: what still needs it, in words; then it is a conflict, unless it is forced."""
    if used_by and not force:
        raise Conflict(
            f"The secret {secret.name} is still used by {some_of(used_by)}.",
            "secret_in_use",
            remedy="Wait until they have ended, or delete it anyway: tasks that start later will then fail.",
        )
    with transaction.atomic():
        if Secret.objects.filter(pk=secret.pk).delete()[0]:
            facts = {"name": secret.name, "forced": bool(used_by)}
            record(actor, "secret.delete", f"secret:{secret.pk}", namespace=secret.namespace, **facts)


def secrets_clear(namespace: Namespace, actor: User | None) -> int:
    """Delete every secret of a namespace that is removed. Returns how many there were."""
    with transaction.atomic():
        found = list(Secret.objects.filter(namespace=namespace).values_list("pk", "name"))
        for pk, name in found:
            record(actor, "secret.delete", f"secret:{pk}", namespace=namespace, name=name)
        Secret.objects.filter(namespace=namespace).delete()
    return len(found)


def secrets_reseal() -> tuple[int, list[str]]:
    """Seal every value that an earlier key sealed with the present one, some at a time; may be repeated. Returns how
    many, and the names of those that do not open."""
    done, broken = 0, []
    for secret in Secret.objects.select_related("namespace").order_by("pk").iterator(chunk_size=_AT_ONCE):
        if is_current(secret.key_id):
            continue
        with transaction.atomic():
            locked = Secret.objects.select_for_update().filter(pk=secret.pk, key_id=secret.key_id).first()
            if locked is None:
                continue
            try:
                value = opened(locked)
            except Exception as error:  # noqa: BLE001 - reported by name; the others are still sealed again
                broken.append(f"{secret.namespace.slug}/{secret.name}: {error}")
                continue
            locked.sealed, locked.key_id = seal(value, belongs_to(locked))
            locked.save(update_fields=["sealed", "key_id"])
            done += 1
    answers: list[tuple[Any, Any]] = resealing.send(Secret)
    for _, (more, others) in answers:
        done, broken = done + more, [*broken, *others]
    return done, broken


def _refuse_bad(name: str, value: str, description: str) -> None:
    """Raises `Invalid`; no problem repeats a value."""
    found: list[Problem] = []
    if not SECRET_NAME.fullmatch(name):
        message = "A secret's name has letters, digits and _, at most 128, and no digit first."
        found.append(Problem("name", "invalid", message, "Write for instance AWS_SECRET_KEY.", shorten(name)))
    if not value:
        found.append(Problem("value", "blank", "A secret needs a value.", "Enter the value."))
    elif not is_text(value):
        message = "A value is Unicode text without NUL characters."
        found.append(Problem("value", "invalid", message, "Encode binary content, for instance as Base64."))
    elif (size := len(value.encode())) > LARGEST:
        message = f"A value has at most {LARGEST >> 10} KiB; this one has {size:,} bytes."
        found.append(Problem("value", "too_large", message, "Put large files into a dataset."))
    if len(description) > 500:
        found.append(Problem("description", "too_long", "A description has at most 500 characters.", "Shorten it."))
    if found:
        raise Invalid(found)


def _refuse_full(namespace: Namespace) -> None:
    most: int = settings.YARDMASTER_SECRETS_PER_NAMESPACE
    if Secret.objects.filter(namespace=namespace).count() >= most:
        raise Conflict(
            f"The namespace {namespace.slug} may have {most} secrets, and has that many.",
            "too_many_secrets",
            remedy="Delete secrets that are not used, or ask an administrator to raise "
            "YARDMASTER_SECRETS_PER_NAMESPACE.",
        )


def _refuse_often(actor: User) -> None:
    most: int = settings.YARDMASTER_SECRET_CHANGES
    outcome = take([Taking(Allowance("secrets", most, _MINUTE), f"user {actor.pk}")])
    if outcome.over is not None:
        raise TooMany(f"You may change secrets {most} times a minute.", "rate_limited", wait=_MINUTE)
