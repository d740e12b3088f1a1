"""The API of services: start, list, extend, stop; predictions, and TensorFlow Serving's own REST API of a service."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.hosting.dialing import Reply
from apps.hosting.services import limit_in
from apps.jobs.foreign import FIELD
from apps.namespaces.models import Role
from apps.registry.selectors import model_version_for
from apps.serving import services
from apps.serving.models import Service
from apps.serving.predicting import not_served, predict, rest_call, unpacked
from apps.serving.selectors import service_for, service_of, services_visible, version_in_stage
from apps.serving.serializers import (
    ExtendServiceSerializer,
    ServiceSerializer,
    StartServiceSerializer,
)

_NAMESPACE = OpenApiParameter("namespace", str, description="Only this namespace, by ID or slug.")
_JSON = {"application/json": OpenApiTypes.OBJECT}


class ServiceAddress(ApiView):
    """Below one service: a stranger gets 404 at every address."""

    scope = "jobs"

    def service(self, service_id: UUID, at_least: Role = Role.VIEWER) -> Service:
        return service_for(self.user, service_id, at_least=at_least)

    def answer(self, service: Service, status: int = 200) -> Response:
        return Response(ServiceSerializer(service, context={}).data, status=status)


class ServicesView(IdempotentPosts, ServiceAddress):
    """Model servers that run in your namespaces."""

    def get_serializer_context(self) -> dict[str, Any]:
        """Of many no port is asked: one that was not seen to be ready is said to load."""
        return {**super().get_serializer_context(), "ask": False}

    @extend_schema(parameters=[_NAMESPACE], responses=ServiceSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(
            services_visible(self.user, namespace=request.query_params.get("namespace")), ServiceSerializer
        )

    @extend_schema(request=StartServiceSerializer, responses={200: ServiceSerializer, 201: ServiceSerializer})
    def post(self, request: Request) -> Response:
        """Serve a version of a model, in its namespace and quota. One that is served already is returned (200), with
        the limit that is asked for."""
        data = self.read(StartServiceSerializer).validated_data
        service, is_new = services.service_start(
            user=self.user,
            version=model_version_for(self.user, data["model_version"]),
            idle_limit=limit_in(data),
            cpu=data.get("cpu"),
            memory=data.get("memory"),
            engine=data.get("engine") or None,
            accept_never_fits=data["accept_never_fits"],
            confirmed=data[FIELD],
        )
        return self.answer(service, 201 if is_new else 200)


class ServiceView(ServiceAddress):
    """One service, also when it was stopped. Looking at it starts nothing."""

    @extend_schema(responses=ServiceSerializer)
    def get(self, request: Request, service_id: UUID) -> Response:
        return self.answer(self.service(service_id))


class ServiceStopView(IdempotentPosts, ServiceAddress):
    """Stop a service. Its quota is returned. One that does not run does not change."""

    @extend_schema(request=None, responses=ServiceSerializer)
    def post(self, request: Request, service_id: UUID) -> Response:
        return self.answer(services.service_stop(user=self.user, service=self.service(service_id)))


class ServiceExtendView(IdempotentPosts, ServiceAddress):
    """Count the time without requests from now, with another limit if one is given."""

    @extend_schema(request=ExtendServiceSerializer, responses=ServiceSerializer)
    def post(self, request: Request, service_id: UUID) -> Response:
        limit = limit_in(self.read(ExtendServiceSerializer).validated_data)
        return self.answer(services.service_extend(user=self.user, service=self.service(service_id), idle_limit=limit))


class PredictView(ApiView):
    """Predictions of a version that is served."""

    scope = "jobs"
    verb = "predict"

    @extend_schema(request=_JSON, responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def post(self, request: Request, version_id: UUID) -> HttpResponse:
        """The body is TensorFlow Serving's: `{"instances": […]}` or `{"inputs": …}` to predict, `{"examples": […]}` to
        classify and regress, with a `signature_name` if it is not the default. 503 where the version is not served
        (yet)."""
        version = model_version_for(self.user, version_id, at_least=Role.MEMBER)
        service = service_of(version)
        if service is None:
            raise not_served(version)
        return _json(predict(service, _body(request), self.verb))


class TensorFlowServingView(ServiceAddress):
    """TensorFlow Serving's REST API of one service, for its clients: with the portal's token in place of none."""

    @extend_schema(operation_id="service_model_read", responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def get(self, request: Request, service_id: UUID, rest: str) -> HttpResponse:
        """`/v1/models/NAME` and `/v1/models/NAME/metadata`."""
        return self._pass_on("GET", service_id, rest)

    @extend_schema(
        operation_id="service_model_predict", request=_JSON,
        responses={(200, "application/json"): OpenApiTypes.OBJECT},
    )  # fmt: skip
    def post(self, request: Request, service_id: UUID, rest: str) -> HttpResponse:
        """`/v1/models/NAME:predict`, `:classify` or `:regress`, with `/versions/N` or `/labels/STAGE` before the colon
        if a client sends it."""
        return self._pass_on("POST", service_id, rest)

    def _pass_on(self, method: str, service_id: UUID, rest: str) -> HttpResponse:
        service = self.service(service_id, at_least=Role.MEMBER)
        return _json(rest_call(service, method, rest, _body(self.request) if method == "POST" else b""))


class StageServingView(ApiView):
    """TensorFlow Serving's REST API of the version that has a stage, `production` or `staging`: an address that stays
    when the stage moves. No other version ever answers: 503 while the one that has the stage is not served."""

    scope = "jobs"

    @extend_schema(operation_id="stage_model_read", responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def get(self, request: Request, model_id: UUID, stage: str, rest: str) -> HttpResponse:
        """`/v1/models/NAME` and `/v1/models/NAME/metadata`."""
        return _json(rest_call(self._service(model_id, stage), "GET", rest))

    @extend_schema(
        operation_id="stage_model_predict", request=_JSON,
        responses={(200, "application/json"): OpenApiTypes.OBJECT},
    )  # fmt: skip
    def post(self, request: Request, model_id: UUID, stage: str, rest: str) -> HttpResponse:
        """`/v1/models/NAME:predict`, `:classify` or `:regress`."""
        return _json(rest_call(self._service(model_id, stage), "POST", rest, _body(request)))

    def _service(self, model_id: UUID, stage: str) -> Service:
        version = version_in_stage(self.user, model_id, stage, at_least=Role.MEMBER)
        service = service_of(version)
        if service is None:
            raise not_served(version)
        return service


def _body(request: Request) -> bytes:
    return unpacked(request.body, request.headers.get("Content-Encoding", ""))


def _json(reply: Reply) -> HttpResponse:
    """The service's answer as it is. Its program may be a user's: it is never shown as a page."""
    status = reply.status if reply.status == 200 or 400 <= reply.status < 600 else 502
    answer = HttpResponse(reply.body, status=status, content_type="application/json")
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cache-Control"] = "no-store"
    return answer


urlpatterns: list[URLPattern | URLResolver] = [
    path("services/", ServicesView.as_view(), name="services"),
    path("services/<uuid:service_id>/", ServiceView.as_view(), name="service"),
    path("services/<uuid:service_id>/stop/", ServiceStopView.as_view(), name="service_stop"),
    path("services/<uuid:service_id>/extend/", ServiceExtendView.as_view(), name="service_extend"),
    path("services/<uuid:service_id>/<path:rest>", TensorFlowServingView.as_view(), name="service_model"),
    path("models/<uuid:model_id>/stages/<slug:stage>/<path:rest>", StageServingView.as_view(), name="stage_model"),
    path("model-versions/<uuid:version_id>/predict/", PredictView.as_view(), name="model_predict"),
    path("model-versions/<uuid:version_id>/classify/", PredictView.as_view(verb="classify"), name="model_classify"),
    path("model-versions/<uuid:version_id>/regress/", PredictView.as_view(verb="regress"), name="model_regress"),
]
