"""Who may use which session. Raises what services raise; a session of a stranger's namespace is a 404.

A TensorBoard is its namespace's: all of its members see it, those who may launch start and stop it. A Jupyter is its
owner's alone: it runs with the owner's token and has the owner's files. An administrator may take over one that runs,
which is in the audit and on its page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.accounts.models import User
from apps.errors import Conflict, DomainError, Forbidden, NotFound
from apps.hosting.selectors import NOT_ENDED
from apps.jobs.engines.configured import why_nowhere
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.selectors import namespace_for, namespaces_visible, reading_note, require_role, role_of
from apps.workbench.models import Home, Kind, WorkbenchSession
from apps.workbench.proxy.origins import Origins
from yardmaster.lifecycle.phases import Wanted


@dataclass(frozen=True)
class Rights:
    """What a reader may do with a session, as pages offer it. What is asked for is decided by `require_…`."""

    use: bool
    change: bool
    start: bool
    take_over: bool
    delete_files: bool


def rights_of(user: User, session: WorkbenchSession, role: Role | None, *, runs: bool) -> Rights:
    """Those of a reader with this role in the session's namespace. `runs`: whether the session does, or is to."""
    is_own, is_member = session.owner_id == user.pk, may_start_in(user, session.namespace, role)
    deletes_files = may_delete_files(user, session)
    has_origin = origin_missing(Kind(session.kind)) is None
    if not session.is_personal:
        return Rights(role is not None and has_origin, is_member, is_member and has_origin, False, deletes_files)
    is_open_to = is_own or (user.is_staff and session.taken_over_by_id == user.pk)
    return Rights(
        use=is_member and is_open_to and has_origin,
        change=is_member and (is_own or user.is_staff),
        start=is_member and is_own and has_origin,
        take_over=user.is_staff and not is_own and runs,
        delete_files=deletes_files,
    )


def may_start_in(user: User, namespace: Namespace, role: Role | None) -> bool:
    """Whether a reader with this role may start sessions in the namespace."""
    return role in (Role.MEMBER, Role.MANAGER) and (namespace.closed_at is None or user.is_staff)


def sessions_visible(user: User, *, namespace: str | Namespace | None = None) -> QuerySet[WorkbenchSession]:
    """The shared sessions of the user's namespaces and their own Jupyters, the newest first; administrators see all.
    `namespace`: only of this one; as a row, one that the user may see."""
    if isinstance(namespace, Namespace):
        reading_note(user, "namespace", namespace.pk, namespace)
        mine: Any = [namespace]
    else:
        mine = [namespace_for(user, namespace)] if namespace else namespaces_visible(user)
    found = with_all(WorkbenchSession.objects.filter(namespace__in=mine))
    if not user.is_staff:
        found = found.filter(~Q(kind=Kind.JUPYTER) | Q(owner=user))
    return found.order_by("-pk")


def session_for(user: User, session_id: UUID) -> WorkbenchSession:
    """The session, whether it runs or not, for one who may see that it is there. Raises 404."""
    found = sessions_visible(user).filter(pk=session_id).first()
    if found is None:
        raise NotFound("There is no such session, or it is not yours.")
    return found


def session_with_files_for(user: User, session_id: UUID) -> WorkbenchSession:
    """A Jupyter whose kept files this user may delete, also one in a namespace that its owner has left. Raises 404."""
    found = with_all(WorkbenchSession.objects.filter(pk=session_id, kind=Kind.JUPYTER)).first()
    if found is None or not may_delete_files(user, found):
        raise NotFound("There is no Jupyter with this ID whose files you may delete.")
    return found


def may_delete_files(user: User, session: WorkbenchSession) -> bool:
    """Its owner and administrators always; managers of its namespace when its owner has left that."""
    if not session.is_personal:
        return False
    if user.is_staff or session.owner_id == user.pk:
        return True
    return role_of(user, session.namespace) == Role.MANAGER and role_of(session.owner, session.namespace) is None


def require_files(user: User, session: WorkbenchSession) -> None:
    """Raises where this user may not delete what the session keeps."""
    if not may_delete_files(user, session):
        raise Forbidden("Only the owner can delete the files of a Jupyter.", "Ask its owner.")


def left_behind(user: User, namespace: Namespace) -> QuerySet[WorkbenchSession]:
    """Jupyters that keep files in a namespace that their owner has left: the user's own, wherever they are, and those
    of others in this namespace, for its managers and administrators."""
    seats = Membership.objects.filter(namespace=OuterRef("namespace"), user=OuterRef("owner"))
    homes = Home.objects.filter(namespace=OuterRef("namespace"), owner=OuterRef("owner"))
    found = WorkbenchSession.objects.filter(Exists(homes), ~Exists(seats), kind=Kind.JUPYTER)
    which = Q(owner=user)
    if user.is_staff or role_of(user, namespace) == Role.MANAGER:
        which |= Q(namespace=namespace)
    return with_all(found.filter(which)).order_by("-pk")


def without_role() -> QuerySet[WorkbenchSession]:
    """Jupyters that run, or are to, whose owner may no longer start one there."""
    seats = Membership.objects.filter(
        namespace=OuterRef("namespace"), user=OuterRef("owner"), role__in=[Role.MEMBER, Role.MANAGER]
    )
    found = WorkbenchSession.objects.filter(NOT_ENDED, ~Exists(seats), kind=Kind.JUPYTER, owner__is_staff=False)
    return with_all(found.filter(job__wanted=Wanted.RUN.value))


def require_change(user: User, session: WorkbenchSession) -> None:
    """Raises where this user may not start, stop or resize the session. Administrators may stop each."""
    require_role(user, session.namespace, Role.MEMBER)
    if session.is_personal and session.owner_id != user.pk and not user.is_staff:
        raise Forbidden("This Jupyter belongs to another user.", "Start your own.")


def require_start(user: User, session: WorkbenchSession) -> None:
    """As `require_change`; a Jupyter is started by its owner alone, whose token it gets."""
    require_change(user, session)
    require_own_origin(Kind(session.kind))
    if not session.is_personal:
        return
    if session.owner_id != user.pk:
        raise Forbidden(f"Only the owner, {session.owner.username}, can start this Jupyter.", "Start your own.")


def require_use(user: User, session: WorkbenchSession) -> None:
    """Raises where this user may not look into the session."""
    require_own_origin(Kind(session.kind))
    if not session.is_personal:
        require_role(user, session.namespace, Role.VIEWER)
        return
    require_role(user, session.namespace, Role.MEMBER)
    if session.owner_id == user.pk or (user.is_staff and session.taken_over_by_id == user.pk):
        return
    remedy = (
        "Take it over on its page: that is recorded, and its owner sees it." if user.is_staff else "Start your own."
    )
    raise Forbidden(f"This Jupyter belongs to {session.owner.username}.", remedy)


def require_own_origin(kind: Kind) -> None:
    """Raises where `origin_missing`."""
    if missing := origin_missing(kind):
        raise missing


def start_refusal(user: User, kind: Kind) -> DomainError | None:
    """Why a member who may start sessions of the namespace can start none of this kind, wherever it is."""
    return origin_missing(kind) or why_nowhere(user)


def origin_missing(kind: Kind = Kind.JUPYTER) -> Conflict | None:
    """Where a Jupyter would share its origin with sessions of other users, and the operator has not allowed it: its
    pages are its user's programs, and could act in those of others, and as them. So could Spark's history server, which
    makes objects of classes that an event log names. A TensorBoard needs none."""
    places: Origins = settings.YARDMASTER_WORKBENCH_ORIGINS
    if kind == Kind.TENSORBOARD or places.each_its_own or settings.YARDMASTER_WORKBENCH_SHARED_ORIGIN:
        return None
    return Conflict(
        f"A {kind.label} session needs an origin of its own, and all sessions share {places.shared}.",
        "shared_origin",
        remedy="Ask an administrator to set YARDMASTER_WORKBENCH_URL to an address whose host begins with `*.`; or, "
        "where all users trust each other, YARDMASTER_WORKBENCH_SHARED_ORIGIN=1.",
    )


def with_all(rows: QuerySet[WorkbenchSession]) -> QuerySet[WorkbenchSession]:
    """With all that is shown of a session, in one statement."""
    return rows.select_related("namespace", "owner", "started_by", "taken_over_by", "job__namespace").defer(
        "job__waiting"
    )
