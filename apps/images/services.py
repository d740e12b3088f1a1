"""Changes of the catalogue. Every verb writes its audit event in its own transaction.

Not here: who may call it (the views and pages ask), and which images a job may name (`apps.jobs.engines.images`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.changes import changes
from apps.audit.services import record
from apps.errors import Conflict, Invalid
from apps.images.models import Image
from apps.namespaces.models import Namespace
from apps.namespaces.named import namespaces_bounded
from yardmaster.errors import Problem
from yardmaster.job.spec import Strategy
from yardmaster.job.spec_images import LONGEST_NAME, is_image_name, is_pinned_reference
from yardmaster.job.spec_limits import is_text, shorten

MOST = 500
"""Images of the catalogue."""
MOST_PACKAGES = 2_000
LONGEST_DESCRIPTION = 500
CHANGEABLE = (
    "reference", "python", "tensorflow", "strategies", "gpus", "description", "pull_secret", "everyone", "enabled",
    "packages",
)  # fmt: skip
_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9][0-9a-z]{0,11}){0,3}", re.ASCII)
_PULL_SECRET = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,126}[a-z0-9])?", re.ASCII)
"""As clusters name secrets."""
_PACKAGE = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_])?", re.ASCII)
_STRATEGIES = tuple(one.value for one in Strategy if one is not Strategy.SERVICE)


def image_create(
    *, name: str, facts: Mapping[str, Any], namespaces: Iterable[Namespace] = (), actor: User
) -> Image:  # fmt: skip
    """Add an image. `facts` are the values of `CHANGEABLE`. Raises `Invalid`, and `Conflict` where the catalogue is
    full."""
    problems = [] if is_image_name(name) else [_bad_name(name)]
    if found := problems + list(_problems(facts, is_new=True)):
        raise Invalid(found)
    now = timezone.now()
    image = Image(name=name, created_at=now, created_by=actor, changed_at=now, changed_by=actor, **facts)
    try:
        with transaction.atomic():
            if Image.objects.count() >= MOST:
                raise Conflict(f"The catalogue has at most {MOST} images.", "too_many_images", remedy="Remove some.")
            image.save(force_insert=True)
            image.namespaces.set(namespaces_bounded(namespaces, "An image"))
            record(actor, "image.create", f"image:{image.pk}", name=name, reference=image.reference)
    except IntegrityError as error:
        message = "The catalogue has an image of this name."
        raise Invalid([Problem("name", "unique", message, "Choose another name, or change that image.", name)]) from (
            error
        )
    return image


def image_change(
    *, image: Image, facts: Mapping[str, Any], namespaces: Iterable[Namespace] | None = None, actor: User
) -> Image:
    """Change what `facts` name of `CHANGEABLE`, and who may use it. Jobs that are queued or running keep theirs."""
    if found := list(_problems(facts, is_new=False)):
        raise Invalid(found)
    with transaction.atomic():
        locked = Image.objects.select_for_update().get(pk=image.pk)
        changed = [field for field, value in facts.items() if getattr(locked, field) != value]
        before = {field: getattr(locked, field) for field in changed}
        for field in changed:
            setattr(locked, field, facts[field])
        locked.changed_at, locked.changed_by = timezone.now(), actor
        locked.save(update_fields=[*changed, "changed_at", "changed_by"])
        if namespaces is not None:
            before["namespaces"] = _slugs(locked)
            locked.namespaces.set(namespaces_bounded(namespaces, "An image"))
        after = {field: getattr(locked, field) for field in changed} | {"namespaces": _slugs(locked)}
        if said := changes(before, {field: after[field] for field in before}):
            record(actor, "image.change", f"image:{locked.pk}", **{"name": locked.name, **said})
    return locked


def _slugs(image: Image) -> list[str]:
    return sorted(image.namespaces.values_list("slug", flat=True))


def image_delete(*, image: Image, actor: User) -> None:
    """Remove it from the catalogue. Jobs that name it keep it; a retry of them needs another."""
    with transaction.atomic():
        subject = f"image:{image.pk}"
        if Image.objects.filter(pk=image.pk).delete()[0]:
            record(actor, "image.delete", subject, name=image.name, reference=image.reference)


def _bad_name(name: str) -> Problem:
    message = f"An image's name has 1 to {LONGEST_NAME} lowercase letters, digits, dots, dashes and underscores."
    return Problem("name", "bad_value", message, "Write for instance tensorflow-2.19.", shorten(name))


def _problems(facts: Mapping[str, Any], *, is_new: bool) -> Iterator[Problem]:
    reference = facts.get("reference", "")
    if (is_new or "reference" in facts) and not is_pinned_reference(reference):
        yield _bad_reference(reference)
    for field, what in (("python", "3.11"), ("tensorflow", "2.19.0")):
        if (version := facts.get(field, "")) and not _VERSION.fullmatch(version):
            message = f"This is no version of {field.capitalize().replace('flow', 'Flow')}."
            yield Problem(field, "bad_value", message, f"Write for instance {what}, or nothing.", shorten(version))
    for one in facts.get("strategies", ()):
        if one not in _STRATEGIES:
            remedy = f"Use some of: {', '.join(_STRATEGIES)}; or none for all of them."
            yield Problem("strategies", "bad_value", "There is no such strategy.", remedy, shorten(str(one)))
    description = facts.get("description", "")
    if len(description) > LONGEST_DESCRIPTION or not is_text(description):
        message = f"A description is text of at most {LONGEST_DESCRIPTION} characters."
        yield Problem("description", "too_long", message, "Shorten it.", str(len(description)))
    if (secret := facts.get("pull_secret", "")) and not _PULL_SECRET.fullmatch(secret):
        message = "A pull secret's name has at most 128 lowercase letters, digits, dashes and dots."
        remedy = "Write the name of the cluster's Secret, such as registry-login."
        yield Problem("pull_secret", "bad_value", message, remedy, shorten(secret))
    yield from _package_problems(facts.get("packages"))


def _package_problems(packages: Sequence[str] | None) -> Iterator[Problem]:
    if packages is not None and len(packages) > MOST_PACKAGES:
        message = f"There are at most {MOST_PACKAGES} packages."
        yield Problem("packages", "too_long", message, "Leave them out: then none are said to be missing.")
        return
    for one in packages or ():
        if not _PACKAGE.fullmatch(one):
            message = "This is no name of a module or of a package."
            yield Problem("packages", "bad_value", message, "Write names without versions.", shorten(one))


def _bad_reference(reference: str) -> Problem:
    """The remedy says what is missing."""
    message = "An image is named by registry, repository and digest, so that it always is the same image."
    remedy = "Write for instance registry.example/team/tensorflow@sha256:… with all 64 digits of the digest."
    if reference and "@" not in reference:
        message = "The reference has no digest: what a tag means may change."
        remedy = (
            "Append @sha256:…, which `docker buildx imagetools inspect` or `crane digest` of this reference prints."
        )
    return Problem("reference", "bad_value" if "@" in reference else "digest_missing", message, remedy,
                   shorten(reference, 120))  # fmt: skip
