"""Sessions of the workbench in every state, without their programs: a state is columns of the session and its job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.jobs.models import Job
from apps.namespaces.models import Namespace
from apps.workbench import services
from apps.workbench.models import WorkbenchSession
from tests.integration.jobs.conftest import engine_settings, stores, world

__all__ = ["engine_settings", "stores", "world"]


@pytest.fixture
def me(ada, signed_in):
    return signed_in(ada)


@pytest.fixture
def mine(ada) -> Namespace:
    found: Namespace = ada.personal_namespace
    return found


@pytest.fixture
def jupyter(world, ada) -> WorkbenchSession:
    """Ada's, queued."""
    return jupyter_of(ada)


@pytest.fixture
def board(world, ada) -> WorkbenchSession:
    """That of all jobs of Ada's namespace, queued."""
    return services.tensorboard_start(user=ada, namespace=ada.personal_namespace)[0]


def jupyter_of(user: User, namespace: Namespace | None = None) -> WorkbenchSession:
    return services.jupyter_start(user=user, namespace=namespace or user.personal_namespace)[0]


def ready(session: WorkbenchSession, **columns: Any) -> WorkbenchSession:
    """Its port has answered."""
    now = timezone.now()
    Job.objects.filter(pk=session.job_id).update(phase="RUNNING", started_at=now)
    return changed(session, ready_at=now, **columns)


def failed(session: WorkbenchSession, message: str, remedy: str) -> WorkbenchSession:
    over(session, "FAILED")
    Job.objects.filter(pk=session.job_id).update(message=message, remedy=remedy)
    return changed(session)


def over(session: WorkbenchSession, phase: str = "STOPPED") -> WorkbenchSession:
    """Its job has ended, with all that was of it."""
    now = timezone.now()
    Job.objects.filter(pk=session.job_id).update(
        phase=phase, decided_at=now, released_at=now, cleaned_up_at=now, next_look_at=None
    )
    return changed(session)


def unused(session: WorkbenchSession, *, left: timedelta) -> WorkbenchSession:
    """So much of its idle limit is left."""
    since = timezone.now() + left - session.idle_limit
    Job.objects.filter(pk=session.job_id).update(started_at=since)
    return changed(session, ready_at=since, last_used_at=since)


def changed(session: WorkbenchSession, **columns: Any) -> WorkbenchSession:
    """The session as it is in the database, with these columns."""
    rows = WorkbenchSession.objects.filter(pk=session.pk)
    if columns:
        rows.update(**columns)
    return rows.select_related("job", "namespace", "owner", "started_by").get()
