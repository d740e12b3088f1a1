"""The API of workbench sessions: list, start, stop, restart (with another size), extend, take over,
delete what a Jupyter keeps."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.hosting.services import limit_in
from apps.jobs.selectors import job_for
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.workbench import services
from apps.workbench.access import session_for, session_with_files_for, sessions_visible
from apps.workbench.boards import selections
from apps.workbench.homes import homes_by_session
from apps.workbench.models import Kind, WorkbenchSession
from apps.workbench.serializers import (
    ExtendSessionSerializer,
    RestartSessionSerializer,
    SessionSerializer,
    SizeSerializer,
    StartSessionSerializer,
)
from apps.workbench.services import names_of
from apps.workbench.sizes import sizes

_FILTERS = [
    OpenApiParameter("namespace", str, description="Only this namespace, by ID or slug."),
    OpenApiParameter("kind", str, enum=[one.value for one in Kind]),
]


class SessionAddress(ApiView):
    """Below one session: a stranger gets 404 at every address."""

    scope = "jobs"

    def answer(self, session: WorkbenchSession, status: int = 200) -> Response:
        return Response(SessionSerializer(session, context={}).data, status=status)


class SessionsView(IdempotentPosts, SessionAddress):
    """TensorBoards of your namespaces, and your own Jupyters."""

    def get_serializer_context(self) -> dict[str, Any]:
        """Of many no port is asked: one that was not seen to be ready is said to load."""
        return {**super().get_serializer_context(), "ask": False}

    @extend_schema(parameters=_FILTERS, responses=SessionSerializer(many=True))
    def get(self, request: Request) -> Response:
        found = sessions_visible(self.user, namespace=request.query_params.get("namespace"))
        kind = request.query_params.get("kind")
        rows = self.paginate_queryset(found.filter(kind=kind) if kind else found) or []
        known = {"names": names_of(rows), "homes": homes_by_session(rows), "selections": selections(rows)}
        context = {**self.get_serializer_context(), **known}
        return self.get_paginated_response(SessionSerializer(rows, many=True, context=context).data)

    @extend_schema(request=StartSessionSerializer, responses={200: SessionSerializer, 201: SessionSerializer})
    def post(self, request: Request) -> Response:
        """Start a session in a namespace and its quota. One that runs already is returned (200), with the limit that is
        asked for."""
        data = self.read(StartSessionSerializer).validated_data
        wanted = {
            "size": data.get("size") or None,
            "idle_limit": limit_in(data),
            "engine": data.get("engine") or None,
            "environment": data.get("environment"),
            "spark_executors": data.get("spark_executors"),
            "spark_cluster": data.get("spark_cluster"),
            "spark_cores": data.get("spark_cores"),
            "spark_memory": data.get("spark_memory"),
            "accept_never_fits": data["accept_never_fits"],
        }
        jobs = data.get("jobs") or []
        namespace = self._namespace(data.get("namespace"), jobs)
        if data["kind"] == Kind.JUPYTER:
            session, is_new = services.jupyter_start(user=self.user, namespace=namespace, **wanted)
        elif data["kind"] == Kind.SPARK_HISTORY:
            session, is_new = services.spark_history_start(user=self.user, namespace=namespace, job_ids=jobs, **wanted)
        else:
            session, is_new = services.tensorboard_start(user=self.user, namespace=namespace, job_ids=jobs, **wanted)
        return self.answer(session, 201 if is_new else 200)

    def _namespace(self, named: str | None, jobs: list[UUID]) -> Namespace:
        if not named and jobs:
            return job_for(self.user, jobs[0], at_least=Role.MEMBER).namespace
        return namespace_for(self.user, named, at_least=Role.MEMBER)


class SizesView(SessionAddress):
    """The sizes that sessions come in."""

    pagination_class = None

    @extend_schema(responses=SizeSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(SizeSerializer(list(sizes().values()), many=True).data)


class SessionView(SessionAddress):
    """One session, also when it was stopped. Looking at it starts nothing."""

    @extend_schema(responses=SessionSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        return self.answer(session_for(self.user, session_id))


class SessionStopView(IdempotentPosts, SessionAddress):
    """Stop a session. Its quota is returned, and the files of a Jupyter stay. One that does not run does not change."""

    @extend_schema(request=None, responses=SessionSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        return self.answer(services.session_stop(user=self.user, session=session_for(self.user, session_id)))


class SessionRestartView(IdempotentPosts, SessionAddress):
    """Stop a session and start it again, with another size if one is named. One that was stopped is started."""

    @extend_schema(request=RestartSessionSerializer, responses=SessionSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        data = self.read(RestartSessionSerializer).validated_data
        wanted = {"size": data.get("size") or None, "starts": data.get("starts")}
        session = session_for(self.user, session_id)
        return self.answer(services.session_restart(user=self.user, session=session, **wanted))


class SessionExtendView(IdempotentPosts, SessionAddress):
    """Count the time without use from now, with another limit if one is given."""

    @extend_schema(request=ExtendSessionSerializer, responses=SessionSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        limit = limit_in(self.read(ExtendSessionSerializer).validated_data)
        session = session_for(self.user, session_id)
        return self.answer(services.session_extend(user=self.user, session=session, idle_limit=limit))


class SessionFilesView(SessionAddress):
    """The files that a stopped Jupyter keeps. Its owner deletes them, also in a namespace that they have left; then its
    managers may, too."""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Delete them for good. A worker does it, and returns their part of the storage quota."""
        services.files_delete(user=self.user, session=session_with_files_for(self.user, session_id))
        return Response(status=204)


class SessionTakeOverView(IdempotentPosts, SessionAddress):
    """For administrators: open another user's Jupyter until it is stopped. Recorded, and shown to its owner."""

    scope = "admin"

    @extend_schema(request=None, responses=SessionSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        session = session_for(self.user, session_id)
        return self.answer(services.session_take_over(user=self.user, session=session))


urlpatterns: list[URLPattern | URLResolver] = [
    path("sessions/", SessionsView.as_view(), name="sessions"),
    path("sessions/sizes/", SizesView.as_view(), name="session_sizes"),
    path("sessions/<uuid:session_id>/", SessionView.as_view(), name="session"),
    path("sessions/<uuid:session_id>/stop/", SessionStopView.as_view(), name="session_stop"),
    path("sessions/<uuid:session_id>/restart/", SessionRestartView.as_view(), name="session_restart"),
    path("sessions/<uuid:session_id>/extend/", SessionExtendView.as_view(), name="session_extend"),
    path("sessions/<uuid:session_id>/files/", SessionFilesView.as_view(), name="session_files"),
    path("sessions/<uuid:session_id>/take-over/", SessionTakeOverView.as_view(), name="session_take_over"),
]
