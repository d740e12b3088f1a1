"""Datasets that the portal makes from sources that it knows (`yardmaster.code.known_data`): asked for, fetched by a
worker, checked, and kept as a version in the namespace, whose quota they count against.

One worker at a time has the lease of one. Cut off anywhere, the sweep has it done again from the beginning, and what
the try before had stored is discarded. The same source is made once in a namespace, and again only where its version
was deleted. Not here: who presses the button (`apps.jobs.launch`).
"""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from tempfile import TemporaryFile
from typing import IO

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.datasets.models import Dataset, DatasetVersion, MadeDataset
from apps.datasets.selectors import DATASETS
from apps.datasets.whole_upload import listed, upload_filled
from apps.dispatch.leases import Leases
from apps.dispatch.messages import MAKE_DATASET, enqueue
from apps.errors import Conflict, DomainError, Invalid, NotFound, Unprocessable, error_to_json
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespaces_visible, refuse_closed, require_role
from apps.uploads.models import Upload
from apps.uploads.services import uploads_discard
from apps.uploads.versioned.services import collection_create, version_add
from yardmaster.code.known_data import KERAS, MOST_BYTES, PREFIX, KnownFile, dataset_name, source_files
from yardmaster.errors import Problem, YardmasterError
from yardmaster.job.spec_limits import shorten
from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.web_guard import WebRefused, pieces

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=2)
LONGEST = 1800.0
"""Seconds for one file."""
AT_ONCE = 4
"""That are being made in one namespace."""
_RENEWED_AFTER = 2.0
_SWEPT = 50
_LEASES = Leases("holder", "held_until")
_MAKING, _READY, _FAILED = MadeDataset.State.MAKING, MadeDataset.State.READY, MadeDataset.State.FAILED


class LeaseLost(Exception):
    """Another worker makes it now."""


def dataset_make(*, namespace: Namespace, user: User, source: str) -> MadeDataset:
    """Have the dataset made, unless it is there or under way. Raises `Invalid` and `Conflict`."""
    require_role(user, namespace, Role.MEMBER)
    _refuse_unknown(source)
    with transaction.atomic():
        refuse_closed(Namespace.objects.select_for_update().get(pk=namespace.pk))
        made = MadeDataset.objects.filter(namespace=namespace, source=source).first()
        if made is not None and (made.state == _MAKING or version_made(made) is not None):
            return made
        _refuse_off()
        _refuse_taken(namespace, source)
        _refuse_many(namespace)
        begun = {
            "state": _MAKING, "asked_by": user, "problem": None, "received": 0, "version_id": None,
            "started_at": timezone.now(), "holder": "", "held_until": None,
        }  # fmt: skip
        made, _ = MadeDataset.objects.update_or_create(namespace=namespace, source=source, defaults=begun)
        enqueue(MAKE_DATASET, made.pk)
    return made


def made_for(user: User) -> QuerySet[MadeDataset]:
    """Those in the user's namespaces."""
    rows = MadeDataset.objects.filter(namespace__in=namespaces_visible(user))
    return rows.select_related("namespace").order_by("-pk")


def made_of(user: User, made_id: uuid.UUID) -> MadeDataset:
    """Raises `NotFound`."""
    found = made_for(user).filter(pk=made_id).first()
    if found is None:
        raise NotFound()
    return found


def version_made(made: MadeDataset) -> DatasetVersion | None:
    """The version, where it was made and is still there."""
    if made.state != _READY or made.version_id is None:
        return None
    return DatasetVersion.objects.select_related("parent").filter(pk=made.version_id).first()


def made_sweep(now: datetime) -> None:
    """Wake what lost its message or its worker."""
    free = Q(held_until=None) | Q(held_until__lte=now)
    for made_id in list(MadeDataset.objects.filter(free, state=_MAKING).values_list("pk", flat=True)[:_SWEPT]):
        enqueue(MAKE_DATASET, made_id)


def made_run(made_id: uuid.UUID) -> None:
    """Make it, by one worker at a time. What fails is written down for people."""
    rows, holder = MadeDataset.objects.filter(pk=made_id, state=_MAKING), str(uuid.uuid4())
    if _LEASES.claim(rows, holder, timezone.now(), LEASE) is None:
        return
    made = MadeDataset.objects.select_related("namespace", "asked_by").get(pk=made_id)
    work = _Work(made, rows, holder)
    try:
        work.run()
    except LeaseLost:
        log.info("%s is continued by another worker", made)
    except (YardmasterError, DomainError) as error:
        log.warning("%s was not made: %s", made, error)
        work.fail(error)
    except Exception:
        log.exception("%s was not made", made)
        remedy = "An administrator finds it in the log of the workers. Try again."
        work.fail(Unprocessable("The portal had an error.", "portal_error", remedy=remedy))


class _Work:
    """One dataset, while this worker has its lease."""

    def __init__(self, made: MadeDataset, rows: QuerySet[MadeDataset], holder: str) -> None:
        self.made, self.rows, self.holder = made, rows, holder
        self.received, self.renewed = 0, time.monotonic()

    def run(self) -> None:
        if self.made.asked_by is None:
            raise Conflict("The user who asked for it was removed.")
        require_role(self.made.asked_by, self.made.namespace, Role.MEMBER)
        _refuse_off()
        self._discard()
        with ExitStack() as open_files:
            fetched = [(one, *self._fetched(one, open_files)) for one in source_files(self.made.source)]
            upload = self._stored(fetched)
        with transaction.atomic():
            version = self._version(upload)
            if not _LEASES.release(
                self.rows, self.holder, state=_READY, version_id=version.pk, upload_id=None, received=self.received
            ):
                raise LeaseLost

    def fail(self, error: YardmasterError | DomainError) -> None:
        """Nothing is left of the try but why it failed."""
        self._discard()
        _LEASES.release(self.rows, self.holder, state=_FAILED, problem=error_to_json(error), upload_id=None)

    def _discard(self) -> None:
        upload_id = MadeDataset.objects.filter(pk=self.made.pk).values_list("upload_id", flat=True).first()
        if upload_id is not None:
            uploads_discard(Upload.objects.filter(pk=upload_id, used=False).values_list("pk", flat=True))

    def _beat(self, *, at_once: bool = False) -> None:
        if not at_once and time.monotonic() - self.renewed < _RENEWED_AFTER:
            return
        self.renewed = time.monotonic()
        if not _LEASES.renew(self.rows, self.holder, timezone.now() + LEASE, received=self.received):
            raise LeaseLost

    def _fetched(self, file: KnownFile, open_files: ExitStack) -> tuple[IO[bytes], ListedFile]:
        """The file, checked, and how the upload lists it."""
        target = open_files.enter_context(TemporaryFile())  # noqa: SIM115 - closed by the stack
        digest = hashlib.new("sha256" if len(file.digest) == 64 else "md5", usedforsecurity=False)
        for piece in self._pieces(file):
            digest.update(piece)
            target.write(piece)
            self.received += len(piece)
            self._beat()
        if digest.hexdigest() != file.digest:
            message = f"{file.name} is not the file that Keras expects: its {digest.name} is {digest.hexdigest()}."
            remedy = "Check the mirror that YARDMASTER_DATASET_DOWNLOADS names." if _mirror() else "Try again later."
            raise Unprocessable(message, "download_changed", remedy=remedy)
        return target, listed(file.path, target)

    def _pieces(self, file: KnownFile) -> Iterator[bytes]:
        mirror = _mirror()
        address = f"{mirror}/{file.name}" if mirror else file.address
        try:
            yield from pieces(address, most=MOST_BYTES, seconds=LONGEST, named=mirror)
        except WebRefused as error:
            remedy = (
                "An administrator can name a mirror (YARDMASTER_DATASET_DOWNLOADS). Or upload the file as a dataset: "
                f"it is {file.path} there."
            )
            raise Unprocessable(error.message, "download_failed", remedy=remedy) from error

    def _stored(self, fetched: list[tuple[KnownFile, IO[bytes], ListedFile]]) -> Upload:
        files = [(one, lambda content=content: content) for _, content, one in fetched]

        def begun(upload_id: uuid.UUID) -> None:
            if not _LEASES.renew(self.rows, self.holder, timezone.now() + LEASE, upload_id=upload_id):
                uploads_discard([upload_id])
                raise LeaseLost

        return upload_filled(self.made.namespace, self.made.asked_by, files, begun, lambda: self._beat(at_once=True))

    def _version(self, upload: Upload) -> DatasetVersion:
        """Belongs into the transaction that ends the work."""
        made, name = self.made, dataset_name(self.made.source)
        _refuse_taken(made.namespace, made.source)
        note = f"Made from {made.source}."
        found = Dataset.objects.select_related("namespace").filter(namespace=made.namespace, name=name).first()
        if found is not None:
            return version_add(DATASETS, found, actor=made.asked_by, upload=upload, note=note)
        names = ", ".join(f"keras.datasets.{one}" for one in made.source.removeprefix(PREFIX).split("+"))
        description = f"The files of {names}, as they lie below KERAS_HOME."
        dataset = collection_create(
            DATASETS, namespace=made.namespace, actor=made.asked_by, name=name, description=description, upload=upload,
            note=note,
        )  # fmt: skip
        return DatasetVersion.objects.select_related("parent").get(parent=dataset)


def _mirror() -> str:
    mirror: str = settings.YARDMASTER_DATASET_DOWNLOADS.mirror
    return mirror


def _refuse_unknown(source: str) -> None:
    if not source_files(source):
        message = "The portal does not know this source of a dataset."
        remedy = f"Write keras/ and one or more of {', '.join(KERAS)}, sorted, with + between them."
        raise Invalid([Problem("source", "unknown_source", message, remedy, shorten(source))])


def _refuse_off() -> None:
    if not settings.YARDMASTER_DATASET_DOWNLOADS.allowed:
        raise Conflict(
            "This portal downloads no datasets.",
            "dataset_downloads_off",
            remedy="Upload the files as a dataset, or ask an administrator to set YARDMASTER_DATASET_DOWNLOADS.",
        )


def _refuse_taken(namespace: Namespace, source: str) -> None:
    """Where the name is that of a dataset with other files, which is not touched."""
    name = dataset_name(source)
    found = Dataset.objects.filter(namespace=namespace, name=name).first()
    if found is None:
        return
    if found.versions.exclude(note=f"Made from {source}.").exists():
        detail = f"{namespace.slug} has a dataset {name!r} that was not made from {source}."
        raise Conflict(detail, "name_taken", remedy="Attach it if it has the files, or rename it.")


def _refuse_many(namespace: Namespace) -> None:
    if MadeDataset.objects.filter(namespace=namespace, state=_MAKING).count() >= AT_ONCE:
        detail = f"{AT_ONCE} datasets of {namespace.slug} are being made."
        raise Conflict(detail, "too_many_downloads", remedy="Wait until one of them is there.")
