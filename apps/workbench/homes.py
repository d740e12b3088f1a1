"""The homes of Jupyters: what users keep between sessions. Each counts against the storage of its namespace.

Where the engine reserves space for a home, a first start takes all of it from the quota, or is refused. Where it does
not, what is there is measured every few minutes while a session runs, and once after it; a namespace that holds more
than its quota starts no Jupyter there. A home goes when its user deletes it, and with its user or its namespace; what
it had of the quota is returned when its engine says that it is gone (`home_keeping`).
"""

from __future__ import annotations

import contextlib
import functools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from apps.errors import Conflict, QuotaExceeded
from apps.hosting.services import runs
from apps.jobs.engines.configured import engine_named
from apps.namespaces.models import Namespace
from apps.uploads.storage_ledger import give_back, reservation_use, reserve, storage_over
from apps.workbench.models import Home, WorkbenchSession
from yardmaster.engines.base import KeepsHomes
from yardmaster.errors import Misconfigured
from yardmaster.quantity import format_bytes

REMEDY = "Delete versions or uploads that are no longer needed, or the files of a Jupyter, or ask an administrator."


# --- what a start needs ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def home_taken(session: WorkbenchSession, engine_name: str) -> Iterator[Callable[[], None]]:
    """Around a start there: its home has its place in the namespace's storage, which is returned where the start fails
    and the home is new. What it gives is to be called in the transaction that writes the start down. Both raise
    `Conflict` where the last home is being removed, this one `QuotaExceeded` where a home does not fit. A TensorBoard,
    and what runs already: nothing happens."""
    if not session.is_personal or runs(session.job) or (size := reserved_by(engine_name)) is None:
        yield lambda: None
        return
    made = _taken(session, engine_name, size)
    try:
        yield lambda: _require_kept(session, engine_name)
    except Exception:
        if made is not None and not Home.objects.filter(pk=made.pk, goes=True).exists():
            home_forget(made)
        raise


def _taken(session: WorkbenchSession, engine_name: str, size: int) -> Home | None:
    """The home, if it is new."""
    if not size and (over := storage_over(session.namespace)):
        raise QuotaExceeded(over_words(over), remedy=REMEDY)
    with transaction.atomic():
        home, is_new = home_make(session, engine_name, size)
        if home.goes:
            raise _goes()
        if is_new:
            reserve(session.namespace, size, files=0)
            reservation_use(session.namespace_id, reserved=size, used=size)
    return home if is_new else None


def _require_kept(session: WorkbenchSession, engine_name: str) -> None:
    """Since it was taken, its removal may have been asked for. One that is asked for from now on waits for the end of
    this transaction, and then finds that the session runs."""
    home = homes_of(session).filter(engine=engine_name).select_for_update().first()
    if home is None or home.goes:
        raise _goes()


def _goes() -> Conflict:
    return Conflict("The files of this Jupyter are being deleted.", "files_go", remedy="Try again in a minute.")


def reserved_by(engine_name: str) -> int | None:
    """Bytes that this engine reserves for each home, 0 where it measures them; None where it keeps none, or cannot be
    made: then a launch says so."""
    try:
        engine = engine_named(engine_name)
    except Misconfigured:
        return None
    return engine.home_size() if isinstance(engine, KeepsHomes) else None


def home_make(session: WorkbenchSession, engine_name: str, size: int) -> tuple[Home, bool]:
    """The session's there, and whether it is new. The caller charges the namespace."""
    first = {"size": size, "is_measured": not size, "next_look_at": None if size else timezone.now()}
    whose = {"namespace": session.namespace, "owner": session.owner, "engine": engine_name}
    return Home.objects.get_or_create(**whose, defaults=first)


def home_forget(home: Home) -> None:
    """It is gone: return what it had of the quota. Repeats harmlessly."""
    with transaction.atomic():
        size = Home.objects.select_for_update().values_list("size", flat=True).filter(pk=home.pk).first()
        if size is not None and Home.objects.filter(pk=home.pk).delete()[0]:
            give_back(home.namespace_id, used=size, reserved=0)


# --- reading ---------------------------------------------------------------------------------------------------------


def homes_of(session: WorkbenchSession) -> QuerySet[Home]:
    """Those of its owner in its namespace, one on each engine; none of a TensorBoard."""
    found = Home.objects.filter(namespace=session.namespace_id, owner=session.owner_id)
    return found.order_by("engine") if session.is_personal else found.none()


def homes_by_session(sessions: Sequence[WorkbenchSession]) -> Mapping[uuid.UUID, list[Home]]:
    """The same for many, by their IDs. One query."""
    mine = [one for one in sessions if one.is_personal]
    found = Home.objects.filter(
        namespace__in={one.namespace_id for one in mine}, owner__in={one.owner_id for one in mine}
    )
    by_place: dict[tuple[uuid.UUID, uuid.UUID], list[Home]] = {}
    for home in found.order_by("engine") if mine else ():
        by_place.setdefault((home.namespace_id, home.owner_id), []).append(home)
    return {one.pk: by_place.get((one.namespace_id, one.owner_id), []) for one in mine}


def homes_in(namespace_id: uuid.UUID) -> QuerySet[Home]:
    """Of all users."""
    return Home.objects.filter(namespace=namespace_id)


def homes_size(namespace: Namespace) -> int:
    """Bytes of the namespace's storage that its homes have."""
    return homes_in(namespace.pk).aggregate(size=Sum("size"))["size"] or 0


@dataclass(frozen=True)
class KeptFiles:
    """What a Jupyter keeps, on all engines. `message`: why that is in the way of a start, or what holds its deletion
    up."""

    size: int
    reserved: bool
    """The size is what is reserved for them, used or not."""
    deleting: bool
    message: str


def kept_files_of(sessions: Sequence[WorkbenchSession]) -> Mapping[uuid.UUID, KeptFiles | None]:
    """Of each by its ID, as `kept_files` says it. A few queries for each namespace."""
    homes, over = homes_by_session(sessions), functools.cache(storage_over)
    return {one.pk: kept_files(one, homes.get(one.pk, []), over=over) for one in sessions}


def kept_files(
    session: WorkbenchSession,
    homes: Sequence[Home] | None = None,
    *,
    over: Callable[[Namespace], int] = storage_over,
) -> KeptFiles | None:
    """Of its `homes`, where the caller has read them. None: it keeps nothing."""
    found = list(homes_of(session)) if homes is None else homes
    if not found:
        return None
    return KeptFiles(
        size=sum(one.size for one in found),
        reserved=not any(one.is_measured for one in found),
        deleting=any(one.goes for one in found),
        message=_words(found, over(session.namespace)),
    )


def _words(homes: Sequence[Home], over: int) -> str:
    if going := next((one for one in homes if one.goes), None):
        return f"The files are being deleted. {going.message}".strip()
    if over and any(one.is_measured for one in homes):
        return f"{over_words(over)} No Jupyter starts in this namespace until it is within its quota. {REMEDY}"
    if not all(one.is_whole for one in homes):
        return "There are too many files to measure. The size shown is a minimum."
    return ""


def over_words(over: int) -> str:
    return f"The namespace uses {format_bytes(over)} more than its storage quota."
