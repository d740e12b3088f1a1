"""Copying rows of clusters into datasets, as Celery's workers do it. A process with limits reads the rows and writes
files; this worker says how far it is, stores the files and makes the version.

One worker at a time has the lease of a copy. Cut off anywhere, the sweep has it done again from the beginning; what the
try before had stored is discarded. A copy that failed or was cancelled leaves nothing.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Max, Min, Q, QuerySet
from django.utils import timezone

from apps.connections.opening import in_words, secret_values
from apps.connections.selectors import connection_named
from apps.datasets.models import ConnectionCopy, Dataset, DatasetVersion
from apps.datasets.selectors import DATASETS
from apps.datasets.whole_upload import listed, upload_filled
from apps.dispatch.leases import Leases
from apps.dispatch.messages import COPY_CONNECTION, enqueue
from apps.errors import Conflict, DomainError, QuotaExceeded, Unprocessable, error_to_json
from apps.namespaces.models import Role
from apps.namespaces.selectors import refuse_closed, require_role
from apps.uploads.models import Upload
from apps.uploads.services import uploads_discard
from apps.uploads.storage_ledger import storage_left
from apps.uploads.versioned.services import collection_create, version_add
from yardmaster.errors import YardmasterError
from yardmaster.ignite.copy_program import TOO_LARGE
from yardmaster.ignite.copying import MOST_WRITTEN, Copied, CopyWanted, copied, progress
from yardmaster.ignite.looking import Wanted
from yardmaster.ignite.nodes import nodes_of
from yardmaster.ignite.refusals import NotLooked
from yardmaster.quantity import format_bytes

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=2)
TRIES = 3
SPARED = 1 << 30
"""Bytes of the worker's disk that a copy leaves free."""
_LOOK = 1.0
_SWEPT = 50
_LEASES = Leases("holder", "held_until")
State = ConnectionCopy.State


class LeaseLost(Exception):
    """Another worker copies it now, or it was cancelled."""


def copies_sweep(now: datetime) -> None:
    """Wake what lost its message or its worker, and what an interrupted worker left of those that are cancelled."""
    free = Q(held_until=None) | Q(held_until__lte=now)
    wanted = Q(state=State.COPYING) | Q(upload_id__isnull=False)
    for copy_id in list(ConnectionCopy.objects.filter(free & wanted).values_list("pk", flat=True)[:_SWEPT]):
        enqueue(COPY_CONNECTION, copy_id)


def copy_next(copy_id: uuid.UUID) -> None:
    """This one, or the one whose turn it is; of this one, what an earlier try has left goes in any case."""
    _remove_left(copy_id)
    copy_run(copy_in_turn(timezone.now()) or copy_id)


def copy_in_turn(now: datetime) -> uuid.UUID | None:
    """Which one is copied next: the oldest that waits, of the namespace with the fewest under way whose last one ended
    the longest ago. A server of theirs may need an hour for each."""
    copying = Q(state=State.COPYING)
    waits = copying & (Q(held_until=None) | Q(held_until__lte=now))
    counted = ConnectionCopy.objects.values("namespace_id").annotate(
        under_way=Count("pk", filter=copying & Q(held_until__gt=now)),
        last=Max("ended_at"),
        first=Min("started_at", filter=waits),
    )
    turns = counted.filter(first__isnull=False).order_by("under_way", F("last").asc(nulls_first=True), "first")
    waiting = ConnectionCopy.objects.filter(waits, namespace__in=turns.values("namespace_id")[:1])
    return waiting.order_by("started_at", "pk").values_list("pk", flat=True).first()


def copy_run(copy_id: uuid.UUID) -> None:
    """Copy it, by one worker at a time. What fails is written down for people."""
    _remove_left(copy_id)
    rows, holder = ConnectionCopy.objects.filter(pk=copy_id, state=State.COPYING), str(uuid.uuid4())
    if _LEASES.claim(rows, holder, timezone.now(), LEASE) is None:
        return
    work = _Work(ConnectionCopy.objects.select_related("namespace", "asked_by").get(pk=copy_id), rows, holder)
    try:
        work.run()
    except LeaseLost:
        log.info("%s was cancelled, or another worker continues it", work.copy)
        _remove_left(copy_id)
    except (NotLooked, YardmasterError, DomainError) as error:
        log.info("%s was not copied: %s", work.copy, error)
        work.fail(in_words(error))
    except Exception:
        log.exception("%s was not copied", work.copy)
        remedy = "Try again. If it fails again, ask an administrator to look at the log of the workers."
        work.fail(Unprocessable("The portal had an error.", "portal_error", remedy=remedy))


def _remove_left(copy_id: uuid.UUID) -> None:
    """What was stored of one that has ended without a version."""
    over = ConnectionCopy.objects.filter(pk=copy_id, upload_id__isnull=False).exclude(state=State.COPYING)
    upload_id = over.values_list("upload_id", flat=True).first()
    if upload_id is not None:
        _discard(upload_id)
        over.filter(upload_id=upload_id).update(upload_id=None, holder="", held_until=None)


def _discard(upload_id: uuid.UUID) -> None:
    uploads_discard(Upload.objects.filter(pk=upload_id, used=False).values_list("pk", flat=True))


class _Work:
    """One copy, while this worker has its lease."""

    def __init__(self, copy: ConnectionCopy, rows: QuerySet[ConnectionCopy], holder: str) -> None:
        self.copy, self._rows, self._holder = copy, rows, holder

    def run(self) -> None:
        if self.copy.upload_id is not None:
            _discard(self.copy.upload_id)
        if self.copy.tries >= TRIES:
            raise Conflict("The copy was interrupted repeatedly.", "ignite_interrupted", remedy="Try again later.")
        self._renew(tries=self.copy.tries + 1, rows=0, written=0, upload_id=None)
        self._refuse_gone()
        with TemporaryDirectory(prefix="yardmaster-copy-") as folder:
            found = self._copied(Path(folder))
            self._renew(rows=found.rows)
            upload = self._stored(found)
        with transaction.atomic():
            version = self._version(upload, found.rows)
            ended = {"state": State.READY, "version_id": version.pk, "upload_id": None, "ended_at": timezone.now()}
            if not _LEASES.release(self._rows, self._holder, **ended):
                raise LeaseLost

    def fail(self, error: DomainError) -> None:
        """Nothing is left of the try but why it failed."""
        upload_id = self._rows.values_list("upload_id", flat=True).first()
        if upload_id is not None:
            _discard(upload_id)
        ended = {"state": State.FAILED, "problem": error_to_json(error), "upload_id": None, "ended_at": timezone.now()}
        _LEASES.release(self._rows, self._holder, **ended)

    def _renew(self, **also: object) -> None:
        if not _LEASES.renew(self._rows, self._holder, timezone.now() + LEASE, **also):
            raise LeaseLost

    def _refuse_gone(self) -> None:
        """It is copied for who asked for it, as long as that user may."""
        copy = self.copy
        if copy.asked_by is None:
            raise Conflict("The user who started this copy was removed.", "user_gone", remedy="Start the copy again.")
        refuse_closed(copy.namespace)
        try:
            require_role(copy.asked_by, copy.namespace, Role.MEMBER)
        except DomainError as error:
            detail = f"The user who started this copy is no longer a member of {copy.namespace.slug}."
            raise Conflict(detail, "user_gone", remedy="Ask a member to start the copy.") from error

    def _copied(self, folder: Path) -> Copied:
        copy, policy = self.copy, settings.YARDMASTER_IGNITE_POLICY
        connection = connection_named(copy.namespace, copy.connection)
        cluster = Wanted(nodes_of(connection.hosts, policy), secret_values(connection))
        left = storage_left(copy.namespace)
        space = max(0, shutil.disk_usage(folder).free - SPARED)
        most = min(MOST_WRITTEN, space, MOST_WRITTEN if left is None else left)
        wanted = CopyWanted(cluster, copy.cache, copy.query, most)
        try:
            return self._followed(folder, partial(copied, wanted, policy, folder))
        except NotLooked as error:
            if error.problem.code != TOO_LARGE or left is None or most < left:
                raise
            detail = f"The rows need more than the {format_bytes(left)} that are left of the namespace's storage."
            remedy = "Copy fewer rows or fields, delete versions that are no longer needed, or ask for more storage."
            raise QuotaExceeded(detail, remedy=remedy) from error

    def _followed(self, folder: Path, work: Callable[[threading.Event], Copied]) -> Copied:
        """Do it beside, write down how far it is, and end it where the lease is lost."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as beside:
            going = beside.submit(work, stop)
            try:
                while not going.done():
                    time.sleep(_LOOK)
                    rows, written = progress(folder)
                    self._renew(rows=rows, written=written)
            finally:
                stop.set()
        return going.result()

    def _stored(self, found: Copied) -> Upload:
        files = []
        for path, file in found.files.items():
            with file.open("rb") as content:
                files.append((listed(path, content), _opening(file)))
            self._renew()

        def begun(upload_id: uuid.UUID) -> None:
            if not _LEASES.renew(self._rows, self._holder, timezone.now() + LEASE, upload_id=upload_id):
                uploads_discard([upload_id])
                raise LeaseLost

        return upload_filled(self.copy.namespace, self.copy.asked_by, files, begun, self._renew)

    def _version(self, upload: Upload, rows: int) -> DatasetVersion:
        """Belongs into the transaction that ends the work."""
        copy = self.copy
        what = f"the cache {copy.cache}" if copy.cache else "a query"
        note = f"{rows:,} row{'' if rows == 1 else 's'} of {what} of the data connection {copy.connection}."
        found = Dataset.objects.select_related("namespace").filter(namespace=copy.namespace, name=copy.dataset).first()
        if found is not None:
            return version_add(DATASETS, found, actor=copy.asked_by, upload=upload, note=note)
        dataset = collection_create(
            DATASETS, namespace=copy.namespace, actor=copy.asked_by, name=copy.dataset, description="", upload=upload,
            note=note,
        )  # fmt: skip
        return DatasetVersion.objects.select_related("parent").get(parent=dataset)


def _opening(file: Path) -> Callable[[], IO[bytes]]:
    return lambda: file.open("rb")
