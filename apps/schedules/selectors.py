"""Which templates and schedules a user may see. Reads only."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Count, F, Max, QuerySet

from apps.accounts.models import User
from apps.errors import NotFound
from apps.jobs.models import Job
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespaces_visible, reading_note, require_role
from apps.schedules.models import (
    FROM_SCHEDULE,
    FROM_TEMPLATE,
    JobTemplate,
    Schedule,
    ScheduleRun,
    TemplateJob,
    TemplateRevision,
)


def templates_visible(user: User, namespace: Namespace | None = None) -> QuerySet[JobTemplate]:
    """Those of the user's namespaces, or of one of them; the newest first."""
    where = {"namespace": namespace} if namespace else {"namespace__in": namespaces_visible(user)}
    rows = JobTemplate.objects.filter(**where).select_related("namespace", "created_by")
    return rows.order_by("-pk")


def templates_listed(user: User, namespace: Namespace) -> QuerySet[JobTemplate]:
    """As the list of the page shows them: with `launched` (how many jobs), `last_at` and `scheduled`."""
    rows = templates_visible(user, namespace)
    return rows.annotate(
        launched=Count("jobs", distinct=True), last_at=Max("jobs__job__created_at"),
        scheduled=Count("schedules", distinct=True),
    )  # fmt: skip


def template_for(user: User, template_id: UUID, *, at_least: Role = Role.VIEWER) -> JobTemplate:
    """The template, if the user may see it. 404, or 403 where the role is too low."""
    found = templates_visible(user).filter(pk=template_id).first()
    if found is None:
        raise NotFound()
    if at_least != Role.VIEWER:
        require_role(user, found.namespace, at_least)
    reading_note(user, "job_template", found.pk, found.namespace)
    return found


def revision_of(template: JobTemplate, number: int | None = None) -> TemplateRevision:
    """The newest revision, or the one with this number. Raises `NotFound`."""
    wanted = template.revision if number is None else min(number, template.revision + 1)  # within the column
    found = TemplateRevision.objects.select_related("by").filter(template=template, number=wanted).first()
    if found is None:
        raise NotFound(f"There is no revision {wanted} of this template.", remedy="It may have been removed.")
    return found


def newest_revision_for(user: User, template_id: UUID) -> TemplateRevision:
    """The newest revision of a template that the user may see, with the template at hand. 404. One statement."""
    rows = TemplateRevision.objects.select_related("template__namespace", "template__created_by", "by")
    newest = rows.filter(template=template_id, number=F("template__revision"))
    found = newest.filter(template__namespace__in=namespaces_visible(user)).first()
    if found is None:
        raise NotFound()
    reading_note(user, "job_template", found.template.pk, found.template.namespace)
    return found


def jobs_of_template(template: JobTemplate, most: int) -> list[TemplateJob]:
    """The newest jobs that came from it."""
    rows = TemplateJob.objects.filter(template=template, job__deleted_at__isnull=True).select_related("job__owner")
    return list(rows.defer("job__spec", "job__waiting", "job__note").order_by("-job_id")[:most])


def origin_of(job: Job) -> TemplateJob | None:
    """Which template the job came from, if from any. The key of its launch says whether that is to be looked up."""
    if not (job.request_key or "").startswith((FROM_TEMPLATE, FROM_SCHEDULE)):
        return None
    return TemplateJob.objects.select_related("template", "schedule").filter(pk=job.pk).first()


def schedules_visible(user: User, namespace: Namespace | None = None) -> QuerySet[Schedule]:
    """Those of the user's namespaces, or of one of them; the newest first."""
    where = {"namespace": namespace} if namespace else {"namespace__in": namespaces_visible(user)}
    rows = Schedule.objects.filter(**where).select_related("namespace", "owner", "template", "template__namespace")
    return rows.order_by("-pk")


def schedule_for(user: User, schedule_id: UUID, *, at_least: Role = Role.VIEWER) -> Schedule:
    """The schedule, if the user may see it. 404, or 403 where the role is too low."""
    found = schedules_visible(user).filter(pk=schedule_id).first()
    if found is None:
        raise NotFound()
    if at_least != Role.VIEWER:
        require_role(user, found.namespace, at_least)
    reading_note(user, "schedule", found.pk, found.namespace)
    return found


def runs_of(schedule: Schedule) -> QuerySet[ScheduleRun]:
    """Its times that were decided, or are being: the newest first."""
    rows = ScheduleRun.objects.filter(schedule=schedule).select_related("job", "asked_by")
    return rows.defer("job__spec", "job__waiting", "job__note").order_by("-pk")
