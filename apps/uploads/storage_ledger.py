"""The bytes a namespace holds: reserved at the begin of an upload, used once complete, returned when it goes; and of
which kinds they are. Also how many files are in its lists, which are counted when they are announced or found.

Each change is one conditional update, so that two at once can never both take the last byte. They belong into the
transaction that changes the upload.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Sum

from apps.errors import QuotaExceeded
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import quota_of
from apps.uploads.models import Kind, State, StorageAccount, Upload
from yardmaster.errors import Problem
from yardmaster.logs.volume import Cause, Refusal
from yardmaster.quantity import format_bytes

MOST = 1 << 62
"""Bytes that a namespace without a quota may hold: past what the database counts, SQLite would continue in floats."""


@dataclass(frozen=True)
class StorageUse:
    """Bytes: of what is complete, and of what is still being sent."""

    used: int
    reserved: int
    logs: int = 0
    """The part of `used` that is what tasks printed."""
    files: int = 0
    """In the lists of all uploads, complete or not."""

    def unused(self, hard: int) -> int:
        """Bytes of a quota of `hard` that are left. 0 where more is held than a quota that was lowered."""
        return max(0, hard - self.used - self.reserved)


def reserve(namespace: Namespace, amount: int, files: int) -> None:
    """Set `amount` bytes aside and count so many files more, or raise `QuotaExceeded` with the numbers."""
    quota = quota_of(namespace)
    hard = MOST if quota.storage is None else quota.storage
    most = MOST if quota.files is None else quota.files
    StorageAccount.objects.get_or_create(namespace=namespace)
    rows = StorageAccount.objects.filter(namespace=namespace)
    if amount:
        rows = rows.filter(used__lte=hard - amount - F("reserved"))
    if files:
        rows = rows.filter(files__lte=most - files)
    if not rows.update(reserved=F("reserved") + amount, files=F("files") + files):
        use = storage_use(namespace)
        if files and use.files + files > most:
            raise _files_full(use.files, most, files)
        raise _quota_full(use, hard, amount)


def reservation_use(namespace_id: UUID, *, reserved: int, used: int) -> None:
    """What was reserved is now used, as far as it was needed."""
    StorageAccount.objects.filter(namespace=namespace_id).update(
        reserved=F("reserved") - reserved, used=F("used") + used
    )


def give_back(namespace_id: UUID, *, used: int, reserved: int, files: int = 0) -> None:
    StorageAccount.objects.filter(namespace=namespace_id).update(
        used=F("used") - used, reserved=F("reserved") - reserved, files=F("files") - files
    )


def logs_take(namespace: Namespace, amount: int, limit: int) -> Refusal | None:
    """Use `amount` bytes for what tasks print, or why not: the quota of storage or of logs, or the limit of the logs of
    any namespace."""
    quota = quota_of(namespace)
    hard = MOST if quota.storage is None else quota.storage
    cause, limit = min((limit, Cause.NAMESPACE_LIMIT), (MOST if quota.logs is None else quota.logs, Cause.LOG_QUOTA))[
        ::-1
    ]
    StorageAccount.objects.get_or_create(namespace=namespace)
    account = StorageAccount.objects.filter(namespace=namespace)
    with_space = account.filter(used__lte=hard - amount - F("reserved"), logs__lte=limit - amount)
    if with_space.update(used=F("used") + amount, logs=F("logs") + amount):
        return None
    if account.filter(logs__lte=limit - amount).exists():
        return Refusal(Cause.STORAGE_QUOTA, hard)
    return Refusal(cause, limit)


def logs_change(namespace_id: UUID, amount: int) -> None:
    """Correct what is used for logs by so many bytes, more or less, whatever the quota says: they are there."""
    StorageAccount.objects.filter(namespace_id=namespace_id).update(used=F("used") + amount, logs=F("logs") + amount)


def found_change(namespace_id: UUID, amount: int) -> None:
    """Correct what is used by so many bytes, more or less, whatever the quota says: they were found."""
    StorageAccount.objects.get_or_create(namespace_id=namespace_id)
    StorageAccount.objects.filter(namespace_id=namespace_id).update(used=F("used") + amount)


def storage_use(namespace: Namespace) -> StorageUse:
    account = StorageAccount.objects.filter(namespace=namespace).first()
    if account is None:
        return StorageUse(0, 0)
    return StorageUse(account.used, account.reserved, account.logs, account.files)


def storage_left(namespace: Namespace) -> int | None:
    """Bytes of the namespace's quota that are neither used nor reserved. None where it has no quota of storage."""
    hard = quota_of(namespace).storage
    return None if hard is None else storage_use(namespace).unused(hard)


def storage_over(namespace: Namespace) -> int:
    """Bytes that the namespace holds above its quota; 0 where it keeps within it, or has none."""
    hard, use = quota_of(namespace).storage, storage_use(namespace)
    return 0 if hard is None else max(0, use.used + use.reserved - hard)


def _quota_full(use: StorageUse, hard: int, needed: int) -> QuotaExceeded:
    unused = use.unused(hard)
    detail = (
        f"This needs {format_bytes(needed)} of storage; {format_bytes(unused)} of the namespace's "
        f"{format_bytes(hard)} are available ({format_bytes(use.used)} used, {format_bytes(use.reserved)} reserved)."
    )
    remedy = "Delete versions or uploads that are no longer needed, or ask an administrator for more storage."
    numbers = [("needed", needed), ("unused", unused), ("hard", hard), ("used", use.used), ("reserved", use.reserved)]
    problems = [
        Problem(f"storage.{name}", "quota_full", f"{amount} bytes", "", str(amount)) for name, amount in numbers
    ]
    return QuotaExceeded(detail, remedy=remedy, errors=problems)


def _files_full(used: int, most: int, needed: int) -> QuotaExceeded:
    unused = max(0, most - used)
    detail = (
        f"This needs {needed:,} {'file' if needed == 1 else 'files'} of the namespace's quota; {unused:,} of {most:,} "
        f"are available ({used:,} in versions and uploads)."
    )
    remedy = (
        "Delete versions or uploads that are no longer needed, pack many small files into TFRecord shards, or ask an "
        "administrator for more files."
    )
    numbers = [("needed", needed), ("unused", unused), ("hard", most), ("used", used)]
    problems = [Problem(f"files.{name}", "quota_full", f"{amount} files", "", str(amount)) for name, amount in numbers]
    return QuotaExceeded(detail, remedy=remedy, errors=problems)


def storage_by_kind(namespace: Namespace) -> list[tuple[Kind, int]]:
    """Bytes of each kind that there is anything of, the most first. One query."""
    stored = Upload.objects.filter(namespace=namespace, state=State.COMPLETE, held__gt=0)
    rows = stored.values_list("kind").annotate(bytes=Sum("held")).order_by("-bytes")
    return [(Kind(kind), amount) for kind, amount in rows]
