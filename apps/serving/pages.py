"""The page and panel "Try it" of a model's version: start, wait, fill in, predict, extend, stop.

For htmx each address answers with the panel, or with the result alone; else with a page around it, so that all of it
works without a script. Looking at it starts nothing.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.selectors import user_of
from apps.errors import DomainError
from apps.hosting.dialing import MOST_BODY
from apps.hosting.state import Situation, State, situation_of
from apps.jobs.foreign import FIELD, ForeignModel
from apps.namespaces.models import Role
from apps.registry.models import ONE_VERSION_EACH, ModelVersion
from apps.registry.selectors import model_version_for
from apps.serving import services
from apps.serving.form_fields import Form, NotFilled, forms_of, request_of
from apps.serving.models import Service
from apps.serving.predicting import predict, signatures_of
from apps.serving.results import outputs_of
from apps.serving.samples import classes_of, sample_in
from apps.serving.selectors import service_of
from apps.serving.start_form import StartForm, left_in
from yardmaster.errors import YardmasterError


@login_required
@require_GET
def try_page(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """Where the service stands, and its form when it is ready; `?signature=` chooses one, `?sample=` fills it in."""
    return _panel(request, model_version_for(user_of(request), version_id))


@login_required
@require_POST
def try_start(request: HttpRequest, version_id: UUID) -> HttpResponse:
    user = user_of(request)
    version = model_version_for(user, version_id)
    form = StartForm(request.POST, user=user)
    if not form.is_valid():
        return _panel(request, version, start=form)
    try:
        confirmed = request.POST.get(FIELD) == "1"
        services.service_start(user=user, version=version, confirmed=confirmed, **form.wanted)
    except ForeignModel as error:
        return _panel(request, version, asks=error.detail, start=form)
    except (DomainError, YardmasterError) as error:
        form.add_refusal(error)
        return _panel(request, version, start=form)
    return _after(request, version)


@login_required
@require_POST
def try_stop(request: HttpRequest, version_id: UUID) -> HttpResponse:
    version = model_version_for(user_of(request), version_id)
    service = service_of(version)
    if service is not None:
        services.service_stop(user=user_of(request), service=service)
    return _after(request, version)


@login_required
@require_POST
def try_extend(request: HttpRequest, version_id: UUID) -> HttpResponse:
    version = model_version_for(user_of(request), version_id)
    service = service_of(version)
    try:
        if service is not None:
            services.service_extend(user=user_of(request), service=service)
    except DomainError as error:
        return _panel(request, version, error=_words(error))
    return _after(request, version)


@login_required
@require_POST
def try_predict(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """What the model says of the example that was filled in."""
    user = user_of(request)
    version = model_version_for(user, version_id, at_least=Role.MEMBER)
    result: dict[str, Any] = {}
    try:
        result["outputs"] = _predicted(request, version)
        if result["outputs"] is None:
            result["error"] = "The answer is too large to be shown here. Use the API or the command line."
    except (NotFilled, DomainError, YardmasterError) as error:
        result["error"] = _words(error)
    if "HX-Request" in request.headers:
        return render(request, "models/try/result.html", result)
    return _panel(request, version, result=result)


def _predicted(request: HttpRequest, version: ModelVersion) -> Any:
    service = service_of(version)
    if service is None:
        raise NotFilled("The model is not served now. Start it first.")
    forms = forms_of(signatures_of(service))
    form = next((one for one in forms if one.name == request.POST.get("signature")), None)
    if form is None:
        raise NotFilled("The model has no such signature any more. Reload the page.")
    files = {name: file.read(MOST_BODY) for name, file in request.FILES.items() if isinstance(file, UploadedFile)}
    reply = predict(service, request_of(form, dict(request.POST.lists()), files), form.verb)
    return outputs_of(reply.body, classes_of(user_of(request), version))


def _panel(request: HttpRequest, version: ModelVersion, *, error: str = "", **more: Any) -> HttpResponse:
    service = service_of(version)
    now = situation_of(service, timezone.now()) if service else Situation(State.STOPPED)
    context = {
        "version": version, "model": version.parent, "service": service, "now": now, "error": error,
        "moment": timezone.now(), **more,
    }  # fmt: skip
    if not now.runs:
        user = user_of(request)
        context |= {"start": more.get("start") or StartForm(user=user), "left": left_in(version.parent.namespace)}
    if service is not None and now.state is State.READY:
        context |= _form(request, version, service) | {"addresses": _addresses(request, version, service)}
    is_part = "HX-Request" in request.headers
    if not is_part:
        context["breadcrumbs"] = [
            (reverse("models_page"), "Models"),
            (reverse("model_page", args=[version.parent.pk]), version.parent.name),
            (reverse("model_version_page", args=[version.pk]), f"Version {version.number}"),
        ]
    response = render(request, "models/try/panel.html" if is_part else "models/try/page.html", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _addresses(request: HttpRequest, version: ModelVersion, service: Service) -> list[str]:
    """Where clients of TensorFlow Serving ask it: the service, and the stage if the version has one of its own."""
    rest = f"v1/models/{version.parent.name}"
    found = [reverse("service_model", args=[service.pk, rest])]
    if version.stage in ONE_VERSION_EACH:
        found.append(reverse("stage_model", args=[version.parent.pk, version.stage, rest]))
    return [request.build_absolute_uri(f"{one}:predict") for one in found]


def _form(request: HttpRequest, version: ModelVersion, service: Service) -> dict[str, Any]:
    """The chosen signature as a form, filled with a sample where one was asked for."""
    try:
        forms = forms_of(signatures_of(service))
    except (DomainError, YardmasterError) as error:
        return {"error": _words(error)}
    form = next((one for one in forms if one.name == request.GET.get("signature")), forms[0] if forms else None)
    number = request.GET.get("sample", "")
    sample: Form | None = None
    if form is not None and number.isascii() and number.isdecimal() and len(number) < 6:
        sample = sample_in(form, user_of(request), version, int(number))
        if sample is None:
            return {"forms": forms, "form": form, "no_sample": True}
    return {"forms": forms, "form": sample or form, "next_sample": int(number) + 1 if sample else 0}


def _after(request: HttpRequest, version: ModelVersion) -> HttpResponse:
    if "HX-Request" in request.headers:
        return _panel(request, version)
    return redirect("model_try_page", version.pk)


def _words(error: Exception) -> str:
    if isinstance(error, DomainError):
        return f"{error.detail} {error.remedy}".strip()
    return f"{error} {getattr(error, 'remedy', '')}".strip()


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("model-versions/<uuid:version_id>/try/", try_page, name="model_try_page"),
    path("model-versions/<uuid:version_id>/try/start/", try_start, name="model_try_start"),
    path("model-versions/<uuid:version_id>/try/stop/", try_stop, name="model_try_stop"),
    path("model-versions/<uuid:version_id>/try/extend/", try_extend, name="model_try_extend"),
    path("model-versions/<uuid:version_id>/try/predict/", try_predict, name="model_try_predict"),
]
