"""The API of job templates and schedules. Viewers of a namespace see them, members change and launch."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.idempotency import IdempotentPosts
from apps.errors import Invalid
from apps.jobs.api.job_views import JobAddress
from apps.jobs.api.serializers import JobSerializer, LaunchedJobSerializer
from apps.jobs.selectors import job_for
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.schedules import services, templates
from apps.schedules.contents import spec_of_job
from apps.schedules.models import FROM_TEMPLATE, JobTemplate, Schedule
from apps.schedules.revisions import Revision, changes_in, revisions_of
from apps.schedules.selectors import (
    revision_of,
    runs_of,
    schedule_for,
    schedules_visible,
    template_for,
    templates_visible,
)
from apps.schedules.serializers import (
    JobTemplateRowSerializer,
    JobTemplateSerializer,
    NewScheduleSerializer,
    NewTemplateSerializer,
    NextTimesSerializer,
    ScheduleChangeSerializer,
    ScheduleRunSerializer,
    ScheduleSerializer,
    TemplateChangeSerializer,
    TemplateFilterSerializer,
    TemplateLaunchSerializer,
    TemplateRevisionRowSerializer,
    TemplateRevisionSerializer,
    TimesSerializer,
)
from yardmaster.schedules.due import Plan


class _Address(IdempotentPosts, JobAddress):
    def template(self, template_id: UUID, at_least: Role = Role.VIEWER) -> JobTemplate:
        return template_for(self.user, template_id, at_least=at_least)

    def schedule(self, schedule_id: UUID, at_least: Role = Role.VIEWER) -> Schedule:
        return schedule_for(self.user, schedule_id, at_least=at_least)

    def wanted(self, visible: Any) -> QuerySet[Any]:
        """The rows that the query asks for."""
        query = self.read_query(TemplateFilterSerializer)
        namespace = namespace_for(self.user, query["namespace"]) if "namespace" in query else None
        rows: QuerySet[Any] = visible(self.user, namespace)
        return rows.filter(name=query["name"]) if "name" in query else rows

    def shown(self, template: JobTemplate, status: int = 200) -> Response:
        template.shown = revision_of(template)  # type: ignore[attr-defined]
        return Response(JobTemplateSerializer(template).data, status=status)

    @property
    def request_key(self) -> str | None:
        """What stays the same when an idempotent request is repeated after a crash."""
        return None if self._claim is None else f"{FROM_TEMPLATE}{self._claim.record_id}"


class JobTemplatesView(_Address):
    """Job templates, newest first."""

    @extend_schema(parameters=[TemplateFilterSerializer], responses=JobTemplateRowSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(self.wanted(templates_visible), JobTemplateRowSerializer)

    @extend_schema(request=NewTemplateSerializer, responses={201: JobTemplateSerializer})
    def post(self, request: Request) -> Response:
        """Save a job or a specification as a template. It is checked as a launch is."""
        data: dict[str, Any] = dict(self.read(NewTemplateSerializer).validated_data)
        asked, job_id = data.pop("namespace", None), data.pop("job", None)
        if job_id is not None:
            job = job_for(self.user, job_id)
            data |= {"spec": spec_of_job(job), "engine": data.get("engine", job.engine)}
            asked = asked or job.namespace_id
        namespace = namespace_for(self.user, asked, at_least=Role.MEMBER)
        return self.shown(templates.template_create(user=self.user, namespace=namespace, **data), status=201)


class JobTemplateView(_Address):
    """One template."""

    @extend_schema(responses=JobTemplateSerializer)
    def get(self, request: Request, template_id: UUID) -> Response:
        return self.shown(self.template(template_id))

    @extend_schema(request=TemplateChangeSerializer, responses=JobTemplateSerializer)
    def patch(self, request: Request, template_id: UUID) -> Response:
        """Change it. What the job is becomes a new revision; jobs remember theirs."""
        template = self.template(template_id, Role.MEMBER)
        data = self.read(TemplateChangeSerializer).validated_data
        return self.shown(templates.template_change(user=self.user, template=template, **data))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, template_id: UUID) -> Response:
        """Remove it. Its jobs stay. 409 `template_in_use` while a schedule launches from it."""
        templates.template_remove(user=self.user, template=self.template(template_id, Role.MEMBER))
        return Response(status=204)


class JobTemplateLaunchView(_Address):
    """Launching from a template."""

    @extend_schema(request=TemplateLaunchSerializer, responses={201: LaunchedJobSerializer})
    def post(self, request: Request, template_id: UUID) -> Response:
        """Launch a job with these values of the parameters, as any job is launched."""
        template = self.template(template_id, Role.MEMBER)
        data: dict[str, Any] = dict(self.read(TemplateLaunchSerializer).validated_data)
        job, warnings = templates.template_launch(
            user=self.user, template=template, values=data.pop("parameters"), request_key=self.request_key, **data
        )
        return self.answer(job, status=201, kind=LaunchedJobSerializer, warnings=warnings)


class JobTemplateRevisionsView(_Address):
    """The revisions of a template."""

    pagination_class = None

    @extend_schema(responses=TemplateRevisionRowSerializer(many=True))
    def get(self, request: Request, template_id: UUID) -> Response:
        """Who changed what, the newest first. At most 50 are kept, so that all are in one answer."""
        found = revisions_of(self.template(template_id))
        return Response(TemplateRevisionRowSerializer(found, many=True).data)


class JobTemplateRevisionView(_Address):
    """One revision of a template."""

    @extend_schema(responses=TemplateRevisionSerializer)
    def get(self, request: Request, template_id: UUID, number: int) -> Response:
        """What it says, and what it changed."""
        template = self.template(template_id)
        row = revision_of(template, number)
        found = Revision(row, changes_in(template, row), row.number == template.revision)
        return Response(TemplateRevisionSerializer(found).data)


class SchedulesView(_Address):
    """Schedules, newest first."""

    @extend_schema(parameters=[TemplateFilterSerializer], responses=ScheduleSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(self.wanted(schedules_visible), ScheduleSerializer)

    @extend_schema(request=NewScheduleSerializer, responses={201: ScheduleSerializer})
    def post(self, request: Request) -> Response:
        """Launch a template at these times, as yourself."""
        data: dict[str, Any] = dict(self.read(NewScheduleSerializer).validated_data)
        template = self.template(data.pop("template"), Role.MEMBER)
        made = services.schedule_create(user=self.user, template=template, **data)
        return Response(ScheduleSerializer(made).data, status=201)


class ScheduleTimesView(_Address):
    """The next times of a cron expression."""

    @extend_schema(request=TimesSerializer, responses=NextTimesSerializer)
    def post(self, request: Request) -> Response:
        """Look at them before a schedule is made. Creates nothing."""
        data = self.read(TimesSerializer).validated_data
        plan, now = Plan(data["cron"], data["time_zone"]), timezone.now()
        if problems := services.plan_problems(plan, now):
            raise Invalid(problems)
        return Response({"next_times": [one.isoformat() for one in services.next_times(plan, now)]})


class ScheduleView(_Address):
    """One schedule."""

    @extend_schema(responses=ScheduleSerializer)
    def get(self, request: Request, schedule_id: UUID) -> Response:
        return Response(ScheduleSerializer(self.schedule(schedule_id)).data)

    @extend_schema(request=ScheduleChangeSerializer, responses=ScheduleSerializer)
    def patch(self, request: Request, schedule_id: UUID) -> Response:
        """Change it. The owner stays."""
        schedule = self.schedule(schedule_id, Role.MEMBER)
        data = self.read(ScheduleChangeSerializer).validated_data
        return Response(ScheduleSerializer(services.schedule_change(user=self.user, schedule=schedule, **data)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, schedule_id: UUID) -> Response:
        """Remove it with its history. Its jobs stay."""
        services.schedule_remove(user=self.user, schedule=self.schedule(schedule_id, Role.MEMBER))
        return Response(status=204)


class SchedulePauseView(_Address):
    """Pausing a schedule."""

    @extend_schema(request=None, responses=ScheduleSerializer)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        """Launch nothing until it is resumed. Jobs continue."""
        found = services.schedule_pause(user=self.user, schedule=self.schedule(schedule_id, Role.MEMBER))
        return Response(ScheduleSerializer(found).data)


class ScheduleResumeView(_Address):
    """Resuming a schedule."""

    @extend_schema(request=None, responses=ScheduleSerializer)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        """Launch again from the next time on. If its owner may not launch any more, it becomes yours."""
        found = services.schedule_resume(user=self.user, schedule=self.schedule(schedule_id, Role.MEMBER))
        return Response(ScheduleSerializer(found).data)


class ScheduleRunNowView(_Address):
    """Running a schedule at once."""

    @extend_schema(request=None, responses={201: JobSerializer})
    def post(self, request: Request, schedule_id: UUID) -> Response:
        """Launch its template now with its values, as yourself."""
        schedule = self.schedule(schedule_id, Role.MEMBER)
        job = services.schedule_run_now(user=self.user, schedule=schedule, request_key=self.request_key)
        return self.answer(job, status=201)


class ScheduleRunsView(_Address):
    """What became of the times of a schedule: the last 200, newest first."""

    @extend_schema(responses=ScheduleRunSerializer(many=True))
    def get(self, request: Request, schedule_id: UUID) -> Response:
        return self.page(runs_of(self.schedule(schedule_id)), ScheduleRunSerializer)


_TEMPLATE = "job-templates/<uuid:template_id>/"
_ONE = "schedules/<uuid:schedule_id>/"
urlpatterns: list[URLPattern | URLResolver] = [
    path("job-templates/", JobTemplatesView.as_view(), name="job_templates"),
    path(_TEMPLATE, JobTemplateView.as_view(), name="job_template"),
    path(f"{_TEMPLATE}launch/", JobTemplateLaunchView.as_view(), name="job_template_launch"),
    path(f"{_TEMPLATE}revisions/", JobTemplateRevisionsView.as_view(), name="job_template_revisions"),
    path(f"{_TEMPLATE}revisions/<int:number>/", JobTemplateRevisionView.as_view(), name="job_template_revision"),
    path("schedules/", SchedulesView.as_view(), name="schedules"),
    path("schedules/times/", ScheduleTimesView.as_view(), name="schedule_times"),
    path(_ONE, ScheduleView.as_view(), name="schedule"),
    path(f"{_ONE}pause/", SchedulePauseView.as_view(), name="schedule_pause"),
    path(f"{_ONE}resume/", ScheduleResumeView.as_view(), name="schedule_resume"),
    path(f"{_ONE}run/", ScheduleRunNowView.as_view(), name="schedule_run"),
    path(f"{_ONE}runs/", ScheduleRunsView.as_view(), name="schedule_runs"),
]
