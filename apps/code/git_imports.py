"""Code from Git: asking for it, and which imports a user may see. The fetching is a worker's (`worker`): nothing here
speaks to a Git host.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.code.models import CodeImport, CodeVersion
from apps.dispatch.messages import FETCH_CODE, enqueue
from apps.errors import Conflict, Invalid, NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespaces_visible, refuse_closed, require_role
from apps.secrets.selectors import secret_names
from apps.uploads.versioned.services import checked_name
from yardmaster.errors import Problem, SpecRejected
from yardmaster.git.address import GitAddress, git_address
from yardmaster.git.hosts import host_allowed
from yardmaster.job.spec_limits import shorten

MOST_OPEN = 8
"""Imports of a namespace that have not ended."""


def import_begin(
    *, namespace: Namespace, user: User, address: str, ref: str = "", folder: str = "", name: str = "",
    git_token: str = "",
) -> CodeImport:  # fmt: skip
    """Have a worker fetch this. Its files become the next version of the code `name`, by default that of the
    repository; where the namespace has them already, that version stands for the import. Raises `Invalid` and
    `Conflict`."""
    require_role(user, namespace, Role.MEMBER)
    found = address_checked(address, ref, folder)
    _refuse_unknown_secret(namespace, git_token)
    made = CodeImport(
        namespace=namespace, created_by=user, name=checked_name(name or found.name), repository=found.repository,
        ref=found.ref, folder=found.folder, secret_name=git_token, created_at=timezone.now(),
        next_look_at=timezone.now(),
    )  # fmt: skip
    with transaction.atomic():
        refuse_closed(Namespace.objects.select_for_update().get(pk=namespace.pk))
        _refuse_many(namespace)
        made.save(force_insert=True)
        facts = {"address": str(found), "name": made.name} | ({"secret": git_token} if git_token else {})
        record(user, "code.import", f"code_import:{made.pk}", namespace=namespace, **facts)
        enqueue(FETCH_CODE, made.pk)
    return made


def address_checked(address: str, ref: str = "", folder: str = "") -> GitAddress:
    """What the texts say, of a host that may be asked. Raises `Invalid`."""
    try:
        found = git_address(address, ref, folder)
        host_allowed(found, settings.YARDMASTER_GIT_HOSTS)
    except SpecRejected as error:
        raise Invalid(error.problems) from error
    return found


def imports_visible(user: User) -> QuerySet[CodeImport]:
    """Those in the user's namespaces."""
    return CodeImport.objects.filter(namespace__in=namespaces_visible(user)).select_related("namespace", "created_by")


def import_for(user: User, import_id: UUID) -> CodeImport:
    """Raises `NotFound`."""
    found = imports_visible(user).filter(pk=import_id).first()
    if found is None:
        raise NotFound()
    return found


def versions_from(namespace_id: UUID, repository: str, folder: str) -> QuerySet[CodeVersion]:
    """The versions in the namespace whose files come from this folder of this repository."""
    rows = CodeVersion.objects.filter(parent__namespace=namespace_id, git_repository=repository, git_folder=folder)
    return rows.exclude(git_commit="").select_related("parent")


def _refuse_unknown_secret(namespace: Namespace, name: str) -> None:
    if name and name not in (known := secret_names(namespace)):
        message = f"{namespace.slug} has no secret of this name."
        remedy = f"Use one of: {', '.join(known[:10])}." if known else "Create it: yardmaster secrets set NAME."
        raise Invalid([Problem("git_token", "unknown_secret", message, remedy, shorten(name))])


def _refuse_many(namespace: Namespace) -> None:
    if CodeImport.objects.filter(namespace=namespace, next_look_at__isnull=False).count() >= MOST_OPEN:
        raise Conflict(
            f"{namespace.slug} is fetching from {MOST_OPEN} addresses already.",
            "too_many_imports",
            remedy="Wait until one of them has ended.",
        )
