"""Fetching code from Git, as Celery's workers do it: one at a time has an import's lease. A process of its own speaks
to the host; then its archive becomes an upload, and the upload a version, as if a person had sent it.

A worker may be killed anywhere: before the bytes are in the store the import begins again, after that it continues.
What fails leaves nothing but the reason.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.code.git_imports import address_checked, versions_from
from apps.code.import_turns import import_in_turn
from apps.code.models import Code, CodeImport, CodeVersion, ImportState
from apps.code.selectors import CODE
from apps.dispatch.leases import Leases, due
from apps.dispatch.messages import FETCH_CODE, enqueue_now
from apps.errors import Conflict, DomainError, NotFound, Unprocessable, error_to_json
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import require_role
from apps.secrets.delivery import opened, secret_used
from apps.secrets.models import Kind as SecretKind
from apps.secrets.models import Secret
from apps.uploads.finishing import upload_finish
from apps.uploads.made_here import archive_begin, archive_put
from apps.uploads.models import Kind, State, Upload
from apps.uploads.services import uploads_discard
from apps.uploads.versioned.services import collection_create, version_add
from yardmaster.errors import Problem, Unavailable, YardmasterError
from yardmaster.git.fetching import Fetched, NotFetched, fetch
from yardmaster.git.hosts import host_allowed
from yardmaster.git.refusals import Reason

log = logging.getLogger(__name__)

LEASES = Leases("lease", "leased_until", none=None)
LASTS = timedelta(seconds=60)
KEPT = timedelta(days=7)
"""For so long an import that has ended is shown."""
TRIES = 4
_PAUSE = timedelta(seconds=5)
_AT_ONCE = 50
_RENEW_AFTER = 10.0
_FOLDER = "yardmaster-git-"
_LEFT_AFTER = timedelta(hours=2)
"""A folder that is older was left by a worker that was killed."""


class LeaseLost(Exception):
    """Another worker has the import."""


def code_imports_sweep(now: datetime) -> None:
    """Wake imports whose message was lost or whose worker was killed; forget old ones, and what killed workers left."""
    rows = CodeImport.objects.exclude(leased_until__gt=now)
    for import_id in due(rows, "next_look_at", now).values_list("pk", flat=True)[:_AT_ONCE]:
        enqueue_now(FETCH_CODE, import_id)
    CodeImport.objects.filter(next_look_at=None, created_at__lt=now - KEPT).delete()
    for place in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            if now.timestamp() - place.lstat().st_mtime > _LEFT_AFTER.total_seconds():
                shutil.rmtree(place)


def code_import_next(now: datetime) -> None:
    """Wake the import whose turn it is."""
    if (import_id := import_in_turn(now)) is not None:
        enqueue_now(FETCH_CODE, import_id)


def code_import(import_id: uuid.UUID) -> None:
    """Bring one import to its end, or as far as it comes now."""
    holder, now = uuid.uuid4(), timezone.now()
    rows = CodeImport.objects.filter(pk=import_id, next_look_at__lte=now)
    if LEASES.claim(rows, holder, now, LASTS) is None:
        return
    work = _Work(import_id, holder)
    try:
        work.run()
    except LeaseLost:
        log.info("Import %s is continued by another worker", import_id)
    except (NotFetched, DomainError, YardmasterError) as error:
        work.fail_or_wait(error)
    except Exception as error:
        log.exception("Import %s had an error", import_id)
        work.fail_or_wait(Unavailable(f"The portal had an error ({type(error).__name__})."))


class _Work:
    """One import, while this worker has its lease."""

    def __init__(self, import_id: uuid.UUID, holder: uuid.UUID) -> None:
        self.rows = CodeImport.objects.filter(pk=import_id, next_look_at__isnull=False)
        self.one = CodeImport.objects.select_related("namespace", "created_by").get(pk=import_id)
        self.holder = holder
        self._renewed = time.monotonic()

    def run(self) -> None:
        """Continue where the last try ended. Raises what `fail_or_wait` takes, and `LeaseLost`."""
        self._write(tries=self.one.tries + 1)
        if self.one.tries > TRIES + 1:
            raise Conflict("Fetching was interrupted again and again.", "git_interrupted", remedy="Try again later.")
        self._asker(self.one.namespace)  # before a host is asked, and with the namespace's secret
        if self.one.state == ImportState.STORING:
            sent = Upload.objects.filter(pk=self.one.upload_id or self.one.pk)
            upload = sent.filter(state__in=[State.COMPLETING, State.COMPLETE]).first()
            if upload is not None:
                self._conclude(self._finished(upload))
                return
        self._begin_again()
        with _own_folder() as folder:
            found = self._fetched(folder)
            self._write(commit=found.commit, notes=found.notes)
            if found.archive is None:
                self._conclude(None)
            else:
                self._conclude(self._finished(self._stored(found.archive)))

    def fail_or_wait(self, error: Exception) -> None:
        """Try again after a while what may succeed then; end with the reason what will not, and leave nothing else."""
        problem = _in_words(error)
        passes = isinstance(error, Unavailable) or (isinstance(error, NotFetched) and error.passes)
        log.warning("Import %s: %s", self.one.pk, problem.detail)
        with transaction.atomic(), contextlib.suppress(LeaseLost):
            if passes and self.one.tries < TRIES:
                later = timezone.now() + _PAUSE * self.one.tries
                self._release(problem=error_to_json(problem), next_look_at=later)
                return
            self._release(
                state=ImportState.FAILED, problem=error_to_json(problem), next_look_at=None, upload_id=None
            )  # fmt: skip
            if self.one.upload_id:
                uploads_discard([self.one.upload_id])

    def _begin_again(self) -> None:
        """What an earlier try sent is not whole."""
        if self.one.upload_id:
            uploads_discard([self.one.upload_id])
        self._write(state=ImportState.FETCHING, upload_id=None, size=0)

    def _fetched(self, folder: Path) -> Fetched:
        address = address_checked(self.one.repository, self.one.ref, self.one.folder)
        known = versions_from(self.one.namespace_id, self.one.repository, self.one.folder)
        return fetch(
            address, host_allowed(address, settings.YARDMASTER_GIT_HOSTS), folder=folder,
            limits=settings.YARDMASTER_GIT_LIMITS, known=set(known.values_list("git_commit", flat=True)[:1_000]),
            token=self._token(), beat=self._beat,
        )  # fmt: skip

    def _token(self) -> str:
        """Raises `NotFound` where the secret was deleted."""
        if not self.one.secret_name:
            return ""
        secret = Secret.objects.filter(namespace=self.one.namespace_id, name=self.one.secret_name, kind=SecretKind.TEXT)
        found = secret.first()
        if found is None:
            remedy = f"Create the secret {self.one.secret_name} again."
            raise NotFound(f"The secret {self.one.secret_name} no longer exists.", "secret_missing", remedy=remedy)
        with transaction.atomic():
            secret_used(found, timezone.now())
            facts = {"name": found.name, "code_import": str(self.one.pk)}
            record(None, "secret.use_git", f"secret:{found.pk}", namespace=self.one.namespace, **facts)
        return opened(found).decode().strip()

    def _stored(self, archive: Path) -> Upload:
        """The archive in the store, to be unpacked there."""
        upload = archive_begin(
            namespace=self.one.namespace, actor=self.one.created_by, kind=Kind.CODE, file=archive
        )  # fmt: skip
        try:
            self._write(upload_id=upload.pk)
        except LeaseLost:
            uploads_discard([upload.pk])
            raise
        archive_put(upload, archive, lambda size: self._beat("storing", archive.stat().st_size))
        self._write(state=ImportState.STORING)
        return upload

    def _finished(self, upload: Upload) -> Upload:
        """The upload, complete. Raises `DomainError`, and `Unavailable` while another worker completes it."""
        upload_finish(upload.pk)
        upload.refresh_from_db()
        if upload.state != State.COMPLETE:
            self._write(tries=self.one.tries - 1)  # this one failed at nothing
            raise Unavailable("The files are being stored.")
        return upload

    def _conclude(self, upload: Upload | None) -> None:
        """Make the version, or take the one that there is. All or nothing."""
        with transaction.atomic():
            namespace = Namespace.objects.select_for_update().get(pk=self.one.namespace_id)
            actor = self._asker(namespace)
            version = versions_from(namespace.pk, self.one.repository, self.one.folder).filter(
                git_commit=self.one.commit
            ).order_by("-created_at").first()  # fmt: skip
            is_new = version is None
            if version is None:
                if upload is None:
                    raise Unavailable("The version that held this commit was deleted meanwhile.")
                version = self._version(namespace, upload, actor)
            elif upload is not None:
                uploads_discard([upload.pk])
            self._release(
                state=ImportState.READY, version_id=version.pk, is_new=is_new, problem=None, next_look_at=None,
                upload_id=None,
            )  # fmt: skip

    def _asker(self, namespace: Namespace) -> User:
        """Who asked for this. Raises `DomainError` where that user may ask for it no more."""
        asker = self.one.created_by
        if asker is None:
            raise Conflict("The user who asked for this was removed.", "user_gone")
        try:
            require_role(asker, namespace, Role.MEMBER)
        except NotFound as error:
            detail = f"The user who asked for this is no longer a member of {namespace.slug}."
            raise Conflict(detail, "user_gone", remedy="Have a member import it.") from error
        return asker

    def _version(self, namespace: Namespace, upload: Upload, actor: User) -> CodeVersion:
        more = {
            "git_repository": self.one.repository, "git_ref": self.one.ref, "git_folder": self.one.folder,
            "git_commit": self.one.commit,
        }  # fmt: skip
        code = Code.objects.filter(namespace=namespace, name=self.one.name).first()
        if code is not None:
            return version_add(CODE, code, actor=actor, upload=upload, more=more)
        made = collection_create(
            CODE, namespace=namespace, actor=actor, name=self.one.name, description="", upload=upload, more=more
        )  # fmt: skip
        return CodeVersion.objects.select_related("parent").get(parent=made)

    def _beat(self, step: str, size: int) -> None:
        """Hold the lease, and note how far it is."""
        if size != self.one.size or time.monotonic() - self._renewed > _RENEW_AFTER:
            self._renewed = time.monotonic()
            self._write(size=size)

    def _write(self, **facts: object) -> None:
        """Note it and hold the lease. Raises `LeaseLost`."""
        if not LEASES.renew(self.rows, self.holder, timezone.now() + LASTS, **facts):
            raise LeaseLost
        for name, value in facts.items():
            setattr(self.one, name, value)

    def _release(self, **facts: object) -> None:
        if not LEASES.release(self.rows, self.holder, **facts):
            raise LeaseLost


@contextlib.contextmanager
def _own_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=_FOLDER, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _in_words(error: Exception) -> DomainError:
    """The error as it is kept for people."""
    if isinstance(error, NotFetched):
        return _refused(error.reason)
    if isinstance(error, DomainError):
        return error
    assert isinstance(error, YardmasterError)
    return Unprocessable(error.message, error.code, remedy=error.remedy or "Try again in a moment.")


def _refused(reason: Reason) -> DomainError:
    problem = Problem(reason.field, reason.code, reason.message, reason.remedy, reason.value)
    return Unprocessable(reason.message, reason.code, remedy=reason.remedy, errors=[problem])
