"""The revisions of a template, each with what it changed. Reads only. Not here: how changes are said
(`yardmaster.job.template_changes`)."""

from __future__ import annotations

from dataclasses import dataclass

from apps.schedules.models import JobTemplate, TemplateRevision
from yardmaster.job.template_changes import Said, changes


@dataclass(frozen=True)
class Revision:
    """One revision. `changes` None: the one before it is not kept any more; of the first one it is empty."""

    row: TemplateRevision
    changes: list[str] | None
    is_newest: bool


def revisions_of(template: JobTemplate) -> list[Revision]:
    """All that are kept, the newest first. One statement."""
    rows = list(TemplateRevision.objects.filter(template=template).select_related("by").order_by("-number"))
    older = [*rows[1:], None]
    return [Revision(row, _changes(row, before), row.number == template.revision)
            for row, before in zip(rows, older, strict=True)]  # fmt: skip


def changes_in(template: JobTemplate, revision: TemplateRevision) -> list[str] | None:
    """What this revision changed of the one before it. One statement, or none for the first."""
    if revision.number == 1:
        return []
    before = TemplateRevision.objects.filter(template=template, number=revision.number - 1).first()
    return _changes(revision, before)


def _changes(row: TemplateRevision, before: TemplateRevision | None) -> list[str] | None:
    if row.number == 1:
        return []
    return None if before is None else changes(_said(before), _said(row))


def _said(row: TemplateRevision) -> Said:
    return Said(row.spec, row.engine, row.latest, row.named, row.parameters)
