"""Journeys through the portal: a launch, and the end of an upload. Run within `scene.portal`."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable
from types import CodeType
from typing import Any

from celery import current_app
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.urls import resolve
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.datasets.models import DatasetVersion
from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job
from apps.uploads.models import Upload
from celery_worker import tasks
from tests.figures.journeys import Journey
from tests.figures.scene import ENGINE
from tests.figures.tracing import Trace, in_portal
from tests.integration import sending
from tests.integration.jobs.world import World

JOBS, LAUNCH, DATASETS = "/api/v1/jobs/", "/jobs/launch/", "/api/v1/datasets/"
CONTENT = {"a/b.bin": b"hello", "c": b"x" * 1000}


def portal_journeys() -> list[Journey]:
    user = User.objects.create_user("ada", "ada@example.org", "correct horse battery")
    api, web = APIClient(), Client()
    api.force_login(user)
    web.force_login(user)
    spec = World(engine_named(ENGINE)).spec_json(user)  # type: ignore[arg-type]
    return [
        _launch("launch by the API", _view(JOBS), lambda: api.post(JOBS, {"spec": spec}, format="json")),
        _launch("launch by the page", _view(LAUNCH), lambda: web.post(LAUNCH, _form(spec["code"]))),
        *_uploads(api),
    ]


def _launch(name: str, entry: CodeType, post: Callable[[], Any]) -> Journey:
    """To the row of the new job. The first launch is left out: it makes what is made once per process."""
    assert post().status_code in (201, 302)
    return _to_row(name, entry, post, "INSERT", Job, goal="≤ 9")


def _uploads(api: APIClient) -> list[Journey]:
    """The end of an upload in its request and in a worker, and the version that is made of it."""
    first, second = (sending.begin(api, CONTENT) for _ in range(2))
    for upload in (first, second):
        sending.send(api, upload, CONTENT)
    complete = _view(f"/api/v1/uploads/{first['id']}/complete/")
    made = {"name": "digits", "description": "", "upload": first["id"]}
    by_request = _to_row(
        "end of an upload, by its request", complete, lambda: sending.complete(api, first["id"]), "UPDATE", Upload
    )
    Upload.objects.filter(pk=second["id"]).update(state="completing")
    task = current_app.tasks[tasks.FINISH_UPLOAD].run
    return [
        by_request,
        _to_row(
            "end of an upload, by a worker", inspect.unwrap(task).__code__, lambda: task(second["id"]),
            "UPDATE", Upload, goal="≤ 4", goal_of_returns="0",
        ),
        _to_row(
            "version made of an upload", _view(DATASETS), lambda: api.post(DATASETS, made), "INSERT", DatasetVersion
        ),
    ]  # fmt: skip


def _to_row(
    name: str, entry: CodeType, action: Callable[[], Any], verb: str, model: type[Model], **goals: str
) -> Journey:
    """The journey up to the last statement of this verb on the model's table. Raises `LookupError` where there is
    none."""
    trace, marks = Trace(entry), []
    table = model._meta.db_table

    def noted(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(verb) and f'"{table}"' in sql.partition(" SET ")[0].partition("(")[0]:
            marks.append(len(trace.calls))
        return execute(sql, *rest)

    with connection.execute_wrapper(noted):
        trace.follow(action)
    if not marks:
        raise LookupError(f"{name}: no {verb} of {table}")
    return Journey(name, trace.calls[: marks[-1]], in_portal, **goals)


def _view(path: str) -> CodeType:
    """The function that answers a POST there: the view itself, or its `post`."""
    view = resolve(path).func
    kind = getattr(view, "view_class", None) or getattr(view, "cls", None)
    return inspect.unwrap(kind.post if kind else view).__code__


def _form(code: str) -> dict[str, str]:
    """What a browser sends for two workers and a parameter server. A form that was sent before makes no second job."""
    return {
        "form": uuid.uuid4().hex, "name": "digits", "strategy": "between_graph", "code": code,
        "entry_point": "train.py", "roles-worker-replicas": "2", "roles-worker-cpu": "1", "roles-ps-replicas": "1",
        **{f"{rows}-{count}_FORMS": "0" for rows in ("inputs", "environment") for count in ("TOTAL", "INITIAL")},
    }  # fmt: skip
