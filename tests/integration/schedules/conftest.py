"""The world of jobs, with a template and a schedule of it."""

from __future__ import annotations

import pytest

from apps.namespaces.models import Namespace
from apps.schedules.models import JobTemplate, Schedule
from apps.schedules.services import schedule_create
from apps.schedules.templates import template_create
from tests.integration.jobs.conftest import engine_settings, postgres_world, sent, stores, world
from tests.real.postgres import postgres_cluster, postgres_db

__all__ = ["engine_settings", "postgres_cluster", "postgres_db", "postgres_world", "sent", "stores", "world"]

PARAMETERS = [
    {"name": "lr", "kind": "number", "default": 0.1, "minimum": 0, "maximum": 1},
    {"name": "note", "kind": "text", "default": ""},
]


@pytest.fixture
def mine(ada) -> Namespace:
    return Namespace.objects.get(owner=ada)


def template_of(world, user, namespace: Namespace | None = None, **more) -> JobTemplate:
    """A template with two parameters."""
    spec = world.spec_json(user, arguments=["--lr={{lr}}", "{{note}}"], **more.pop("spec", {}))
    said = {"name": "nightly", "spec": spec, "parameters": PARAMETERS} | more
    return template_create(user=user, namespace=namespace or Namespace.objects.get(owner=user), **said)


def schedule_of(template: JobTemplate, user, **more) -> Schedule:
    """Every night at two."""
    said = {"name": "every night", "cron": "0 2 * * *", "time_zone": "UTC"} | more
    return schedule_create(user=user, template=template, **said)
