"""Changes of job templates, each audited, and launching from them. Members of the namespace may; viewers see.

Not here: what a template may say (`contents`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.code.models import CodeVersion
from apps.errors import Conflict
from apps.jobs.engines.configured import engine_chosen, engine_named
from apps.jobs.models import Job
from apps.jobs.services import job_launch
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import require_role
from apps.schedules.contents import Content, content_checked, content_of_revision, spec_to_launch
from apps.schedules.models import FROM_TEMPLATE, JobTemplate, Schedule, TemplateJob, TemplateRevision
from apps.schedules.saving import name_checked, refuse_full, refuse_often, refuse_taken
from apps.schedules.selectors import revision_of
from yardmaster.code.findings import Finding
from yardmaster.errors import Problem, SpecRejected
from yardmaster.ids import new_id
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.template_parameters import values_of

KEPT_REVISIONS = 50


def template_create(
    *, user: User, namespace: Namespace, name: str, spec: object, description: str = "", engine: str = "",
    latest: Collection[str] = (), parameters: object = (),
) -> JobTemplate:  # fmt: skip
    """The new template. Raises `SpecRejected` with what would refuse its launch, `Invalid`, `Conflict` where the name
    is taken or the namespace has as many as it may."""
    require_role(user, namespace, Role.MEMBER)
    refuse_often(user)
    name = name_checked(name, description)
    content = content_checked(
        user=user, namespace=namespace, spec=spec, engine=engine, latest=latest, parameters=_as_list(parameters)
    )
    now = timezone.now()
    with transaction.atomic():
        refuse_full(namespace, JobTemplate, "template", name, settings.YARDMASTER_SCHEDULES.templates)
        made = JobTemplate.objects.create(
            id=new_id(), namespace=namespace, name=name, description=description, created_at=now, changed_at=now,
            created_by=user,
        )  # fmt: skip
        TemplateRevision.objects.create(template=made, number=1, at=now, by=user, **content.columns())
        record(user, "job_template.create", f"job_template:{made.pk}", namespace=namespace, name=name)
    return made


def template_change(
    *, user: User, template: JobTemplate, name: str | None = None, description: str | None = None,
    spec: object = None, engine: str | None = None, latest: Collection[str] | None = None, parameters: object = None,
) -> JobTemplate:  # fmt: skip
    """Change what is given. What the job is becomes a new revision; nothing is launched. Raises as `template_create`,
    and `Conflict` where another changed it meanwhile."""
    require_role(user, template.namespace, Role.MEMBER)
    refuse_often(user)
    shown = template.name if name is None else name
    shown = name_checked(shown, template.description if description is None else description)
    content = _content_changed(user, template, spec, engine, latest, parameters)
    now = timezone.now()
    with transaction.atomic():
        locked = JobTemplate.objects.select_for_update().get(pk=template.pk)
        if locked.revision != template.revision:
            raise Conflict("The template was changed in the meantime.", remedy="Reload it and try again.")
        refuse_taken(template.namespace, JobTemplate, "template", shown, but=locked.pk)
        facts: dict[str, Any] = {} if shown == locked.name else {"name": shown, "name_before": locked.name}
        if description is not None and description != locked.description:
            facts |= {"description": description, "description_before": locked.description}
            locked.description = description
        if content is not None:
            locked.revision += 1
            TemplateRevision.objects.create(template=locked, number=locked.revision, at=now, by=user,
                                            **content.columns())  # fmt: skip
            TemplateRevision.objects.filter(template=locked, number__lte=locked.revision - KEPT_REVISIONS).delete()
            facts |= {"revision": locked.revision, "revision_before": locked.revision - 1}
        if facts:
            locked.name, locked.changed_at = shown, now
            locked.save(update_fields=["name", "description", "revision", "changed_at"])
            record(user, "job_template.change", f"job_template:{locked.pk}", namespace=template.namespace, **facts)
    template.refresh_from_db()
    return template


def template_remove(*, user: User, template: JobTemplate) -> None:
    """Remove it with its revisions. Its jobs stay. Raises `Conflict` where a schedule launches from it."""
    require_role(user, template.namespace, Role.MEMBER)
    with transaction.atomic():
        locked = JobTemplate.objects.select_for_update().filter(pk=template.pk).first()
        if locked is None:
            return
        if names := list(Schedule.objects.filter(template=locked).values_list("name", flat=True)[:3]):
            message = f"Schedules launch from this template: {', '.join(names)}."
            raise Conflict(message, "template_in_use", remedy="Remove these schedules first.")
        record(user, "job_template.remove", f"job_template:{locked.pk}", namespace=template.namespace, name=locked.name)
        locked.delete()


def template_launch(
    *, user: User, template: JobTemplate, values: Mapping[str, Any], name: str = "", request_key: str | None = None,
    accept_never_fits: bool = False, confirm_foreign_model: bool = False, schedule: Schedule | None = None,
    number: int | None = None,
) -> tuple[Job, list[Finding]]:  # fmt: skip
    """Launch a job from the revision of this number (None: the newest), as any job is launched. Raises as
    `job_launch` does, and `SpecRejected` for values that are not valid, for what is gone, and for code of another
    that would run as the portal. With a `request_key` it may be repeated."""
    require_role(user, template.namespace, Role.MEMBER)
    revision = revision_of(template, number)
    content = content_of_revision(revision)
    filled_in = values_of(content.parameters, values)
    spec = spec_to_launch(user, content, filled_in, name=name.strip())
    _refuse_foreign_code(user, content, spec)
    job, warnings = job_launch(
        user=user, namespace=template.namespace, spec=spec, engine=content.engine or None,
        request_key=request_key or f"{FROM_TEMPLATE}{new_id()}",
        accept_never_fits=accept_never_fits, confirm_foreign_model=confirm_foreign_model,
    )  # fmt: skip
    origin_keep(user=user, job=job, template=template, values=filled_in, schedule=schedule, revision=revision.number)
    return job, warnings


def origin_keep(
    *, user: User, job: Job, template: JobTemplate, values: Mapping[str, Any], schedule: Schedule | None = None,
    revision: int | None = None,
) -> None:  # fmt: skip
    """Write which template the job came from; None: its newest revision. Nothing where that is written already."""
    number = template.revision if revision is None else revision
    with transaction.atomic():
        if not TemplateJob.objects.filter(pk=job.pk).exists():
            origin = TemplateJob(
                job=job, template=template, template_name=template.name, revision=number, values=values,
                schedule=schedule,
            )  # fmt: skip
            TemplateJob.objects.bulk_create([origin], ignore_conflicts=True)
            record(user, "job_template.launch", f"job_template:{template.pk}", namespace=template.namespace,
                   name=template.name, revision=number, job=str(job.pk))  # fmt: skip


def _refuse_foreign_code(user: User, content: Content, spec: TrainingSpec) -> None:
    """Every member may add a version of the code that a template follows: where an engine isolates no user from
    another, that would run as the portal because this user launches. Raises `SpecRejected`."""
    if "code" not in content.latest or settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL:
        return
    if engine_named(engine_chosen(user, content.engine or None)).isolates:
        return
    if not CodeVersion.objects.filter(pk=str(spec.code_version), created_by=user).exists():
        message = "The newest code belongs to another user, and this engine does not isolate users."
        remedy = "Save the template with a fixed version."
        raise SpecRejected([Problem("code", "foreign_code", message, remedy, str(spec.code_version))])


def _content_changed(
    user: User, template: JobTemplate, spec: object, engine: str | None, latest: Collection[str] | None,
    parameters: object,
) -> Content | None:  # fmt: skip
    """The next revision's; None where nothing of it was given or is new."""
    if spec is None and engine is None and latest is None and parameters is None:
        return None
    old = revision_of(template)
    made = content_checked(
        user=user, namespace=template.namespace,
        spec=old.spec if spec is None else spec,
        engine=old.engine if engine is None else engine,
        latest=list(old.latest) if latest is None else latest,
        parameters=old.parameters if parameters is None else _as_list(parameters),
    )  # fmt: skip
    return None if made.columns() == content_of_revision(old).columns() else made


def _as_list(parameters: object) -> object:
    return list(parameters) if isinstance(parameters, tuple) else parameters
