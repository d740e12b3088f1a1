"""The page of engines: what each has, what of it is free, and what the viewer's namespaces may hold of its devices."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_GET

from apps.accounts.models import User
from apps.jobs.engines.device_quotas import MOST, DeviceQuota
from apps.jobs.engines.listing import Device, EngineShown, engines_with_quotas
from apps.namespaces.models import QUANTITY_NAMES
from yardmaster.quantity import format_amount

_WORDS = {name: QUANTITY_NAMES[name][0] for name in ("cpu", "memory", "gpus")}


@dataclass(frozen=True)
class Row:
    """One resource of an engine, in words. `name`: how a job asks for it, where its label says something else."""

    label: str
    name: str
    free: str
    held: str
    others: str
    total: str


@login_required
@require_GET
def engines(request: HttpRequest) -> HttpResponse:
    """Every engine, the default first."""
    assert isinstance(request.user, User)
    found = sorted(engines_with_quotas(request.user), key=lambda one: (not one.is_default, one.name))
    context = {"engines": [(one, _rows(one), _quotas(one)) for one in found], "most": MOST}
    return render(request, "jobs/engines.html", context)


def _quotas(shown: EngineShown) -> list[tuple[Device, DeviceQuota]]:
    return [(device, quota) for device in shown.devices for quota in device.quotas]


def _rows(shown: EngineShown) -> list[Row]:
    """Of everything that it has; GPUs are left out where there are none."""
    if shown.total is None or shown.free is None or shown.held is None:
        return []
    total, free, held = (one.as_amounts() for one in (shown.total, shown.free, shown.held))
    labels = {one.name: one.label for one in shown.devices}
    names = [*_WORDS, *labels, *sorted(set(total) - set(_WORDS) - set(labels))]
    return [
        _row(name, labels.get(name, ""), *(one.get(name, 0) for one in (total, free, held)))
        for name in names
        if name in labels or total.get(name, 0) or held.get(name, 0)
    ]


def _row(name: str, label: str, total: float, free: float, held: float) -> Row:
    others = max(0.0, total - free - held)
    words = [format_amount(name, amount) for amount in (free, held, others, total)]
    return Row(label or _WORDS.get(name, name), name if label else "", *words)


urlpatterns: list[URLPattern | URLResolver] = [path("engines/", engines, name="engines_page")]
