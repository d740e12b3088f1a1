"""The API of sweeps: create, list, look, stop, pause, resume, delete."""

from __future__ import annotations

from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.api.sorted_list import SortedList
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.sweeps import services
from apps.sweeps.models import Sweep
from apps.sweeps.selectors import sweep_for, sweeps_visible, trials_with_jobs
from apps.sweeps.serializers import (
    MadeSweepSerializer,
    NewSweepSerializer,
    SweepRowSerializer,
    SweepSerializer,
    TrialSerializer,
)

_NAMESPACE = OpenApiParameter("namespace", str, description="Only this namespace, by ID or slug.")
_JOBS = OpenApiParameter("jobs", bool, description="Delete its jobs, too. Default: they are kept.")


class SweepAddress(ApiView):
    """Below one sweep: a stranger gets 404 at every address."""

    scope = "jobs"

    def sweep(self, sweep_id: UUID, at_least: Role = Role.VIEWER) -> Sweep:
        return sweep_for(self.user, sweep_id, at_least=at_least)

    def answer(self, sweep: Sweep) -> Response:
        return Response(SweepSerializer(sweep).data)


class SweepsView(IdempotentPosts, SweepAddress):
    """Sweeps: a job many times with other values."""

    @extend_schema(parameters=[_NAMESPACE], responses=SweepRowSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(sweeps_visible(self.user, request.query_params.get("namespace")), SweepRowSerializer)

    @extend_schema(request=NewSweepSerializer, responses={201: MadeSweepSerializer})
    def post(self, request: Request) -> Response:
        """Create a sweep. Its trials are launched one after the other, as jobs like all others."""
        data = self.read(NewSweepSerializer).validated_data
        sweep, warnings = services.sweep_create(
            user=self.user,
            namespace=namespace_for(self.user, data.get("namespace"), at_least=Role.MEMBER),
            base=data["spec"],
            plan=data["plan"],
            engine=data.get("engine"),
            request_key=None if self._claim is None else f"idempotency:{self._claim.record_id}",
            accept_never_fits=data["accept_never_fits"],
        )
        return Response(MadeSweepSerializer(sweep, context={"warnings": warnings}).data, status=201)


class SweepView(SweepAddress):
    """One sweep."""

    @extend_schema(responses=SweepSerializer)
    def get(self, request: Request, sweep_id: UUID) -> Response:
        return self.answer(self.sweep(sweep_id))

    @extend_schema(parameters=[_JOBS], responses={204: None})
    def delete(self, request: Request, sweep_id: UUID) -> Response:
        """Delete a sweep that has ended. Its jobs are kept unless `jobs=true` is given."""
        with_jobs = request.query_params.get("jobs", "").lower() in ("true", "1")
        services.sweep_delete(user=self.user, sweep=self.sweep(sweep_id), with_jobs=with_jobs)
        return Response(status=204)


class SweepTrialsView(SweepAddress):
    """The trials of a sweep, by number."""

    @extend_schema(responses=TrialSerializer(many=True))
    def get(self, request: Request, sweep_id: UUID) -> Response:
        return self.page(SortedList(trials_with_jobs(self.sweep(sweep_id)), "number"), TrialSerializer)


class SweepStopView(IdempotentPosts, SweepAddress):
    """Stop a sweep and the trials that run. One that has ended does not change."""

    @extend_schema(request=None, responses=SweepSerializer)
    def post(self, request: Request, sweep_id: UUID) -> Response:
        return self.answer(services.sweep_stop(user=self.user, sweep=self.sweep(sweep_id)))


class SweepPauseView(IdempotentPosts, SweepAddress):
    """Launch no more trials. Those that run continue."""

    @extend_schema(request=None, responses=SweepSerializer)
    def post(self, request: Request, sweep_id: UUID) -> Response:
        return self.answer(services.sweep_pause(user=self.user, sweep=self.sweep(sweep_id)))


class SweepResumeView(IdempotentPosts, SweepAddress):
    """Launch trials of a paused sweep again."""

    @extend_schema(request=None, responses=SweepSerializer)
    def post(self, request: Request, sweep_id: UUID) -> Response:
        return self.answer(services.sweep_resume(user=self.user, sweep=self.sweep(sweep_id)))


_ONE = "sweeps/<uuid:sweep_id>/"
urlpatterns: list[URLPattern | URLResolver] = [
    path("sweeps/", SweepsView.as_view(), name="sweeps"),
    path(_ONE, SweepView.as_view(), name="sweep"),
    path(f"{_ONE}trials/", SweepTrialsView.as_view(), name="sweep_trials"),
    path(f"{_ONE}stop/", SweepStopView.as_view(), name="sweep_stop"),
    path(f"{_ONE}pause/", SweepPauseView.as_view(), name="sweep_pause"),
    path(f"{_ONE}resume/", SweepResumeView.as_view(), name="sweep_resume"),
]
