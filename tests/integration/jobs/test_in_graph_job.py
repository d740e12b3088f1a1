"""A job of servers in the portal: launched without code, driven by an address and a notebook, ended by a stop."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.jobs.models import Job, JobAttempt
from apps.jobs.services import job_stop
from apps.namespaces.models import Membership, Namespace
from tests.integration.jobs.world import task_of
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

JOBS = "/api/v1/jobs/"
SERVERS: dict[str, Any] = {"strategy": "in_graph", "code": None, "entry_point": ""}


@pytest.fixture
def me(world, ada, signed_in):
    return signed_in(ada)


@pytest.fixture
def stranger(world, bob, signed_in):
    return signed_in(bob)


@pytest.fixture
def up(world, ada) -> Job:
    """It runs."""
    job = world.launch(ada, **SERVERS, inputs=[])
    world.until_running(job)
    return world.again(job)


def serving(client: APIClient, job: Job) -> dict[str, Any] | None:
    return client.get(f"{JOBS}{job.pk}/").json()["serving"]


def test_a_job_file_without_code_makes_servers_and_warns_of_having_no_end(world, me, ada):
    spec = {key: value for key, value in world.spec_json(ada, **SERVERS).items() if key not in ("code", "entry_point")}
    answer = me.post(JOBS, {"spec": spec})
    assert answer.status_code == 201, answer.json()
    assert answer.json()["strategy"] == "in_graph"
    assert [one["code"] for one in answer.json()["warnings"]] == ["no_end"]
    answer = me.post(JOBS, {"spec": spec | {"max_runtime": 3600}})
    assert answer.json()["warnings"] == []
    assert me.post(f"{JOBS}check/", {"spec": spec}).json()["verdict"] == "fits_now"


def test_code_that_nobody_would_run_is_refused(world, me, ada):
    answer = me.post(JOBS, {"spec": world.spec_json(ada, strategy="in_graph")})
    assert answer.status_code == 422
    assert {one["field"] for one in answer.json()["errors"]} == {"code", "entry_point"}
    assert not Job.objects.exists()


def test_while_it_is_up_everybody_who_sees_it_is_told_where(world, me, up):
    run = up.key.name
    found = serving(me, up)
    assert found is not None
    assert found["target"] == f"grpc://worker-0.{run}:2222"
    assert found["reach"]
    assert found["data_dir"] == ""
    assert [(one["role"], one["index"]) for one in found["servers"]] == [("worker", 0), ("worker", 1), ("ps", 0)]
    assert [one["target"] for one in found["servers"]][2] == f"grpc://ps-0.{run}:2222"


def test_with_a_chief_that_is_the_one_to_connect_to(world, me, ada):
    roles = {"worker": {"replicas": 1}, "ps": {"replicas": 1}, "chief": {"replicas": 1}}
    job = world.launch(ada, **SERVERS, roles=roles)
    world.until_running(job)
    found = serving(me, world.again(job))
    assert found is not None
    assert found["target"].startswith("grpc://chief-0.")


def test_the_notebook_is_a_file_to_keep_and_connects_to_the_job(world, me, up):
    answer = me.get(f"{JOBS}{up.pk}/notebook/")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/x-ipynb+json"
    assert answer["Content-Disposition"] == f'attachment; filename="in-graph-{up.pk}.ipynb"'
    notebook = json.loads(answer.content)
    assert notebook["nbformat"] == 4
    code = "".join(line for cell in notebook["cells"] if cell["cell_type"] == "code" for line in cell["source"])
    assert f"TARGET = 'grpc://worker-0.{up.key.name}:2222'" in code


@pytest.mark.parametrize("name", ['"}], "cells": [', "</script><script>alert(1)</script>", "'''", "\\", "💣" * 90])
def test_a_hostile_name_neither_breaks_the_notebook_nor_reaches_its_code(world, me, ada, name):
    job = world.launch(ada, **SERVERS, name=name)
    world.until_running(job)
    answer = me.get(f"{JOBS}{job.pk}/notebook/")
    notebook = json.loads(answer.content)
    code = "".join(line for cell in notebook["cells"] if cell["cell_type"] == "code" for line in cell["source"])
    assert name not in code
    assert "<script" not in answer.content.decode()
    assert "\n" not in answer["Content-Disposition"]


def test_clearml_1046_a_strangers_servers_are_not_found(me, stranger, up):
    foreign = stranger.get(f"{JOBS}{up.pk}/notebook/")
    unknown = stranger.get(f"{JOBS}{uuid.UUID(int=7)}/notebook/")
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.json() == unknown.json()


def test_who_may_look_may_have_the_notebook(stranger, up, ada, bob):
    Membership.objects.create(namespace=Namespace.objects.get(owner=ada), user=bob, role="viewer")
    assert stranger.get(f"{JOBS}{up.pk}/notebook/").status_code == 200


def test_a_job_with_a_script_has_no_notebook(world, me, ada):
    job = world.launch(ada)
    world.until_running(job)
    assert serving(me, job) is None
    answer = me.get(f"{JOBS}{job.pk}/notebook/")
    assert answer.status_code == 404
    assert "its own script" in answer.json()["detail"]


def test_before_and_after_there_is_nothing_to_connect_to(world, me, ada):
    job = world.launch(ada, **SERVERS)
    assert serving(me, job) is None
    assert me.get(f"{JOBS}{job.pk}/notebook/").status_code == 409
    world.until_running(job)
    assert serving(me, job) is not None
    job_stop(user=ada, job=world.again(job))
    assert serving(me, job) is None
    world.until_quiet()
    assert me.get(f"{JOBS}{job.pk}/notebook/").status_code == 409
    assert me.get(f"{JOBS}{job.pk}/notebook/").json()["code"] == "conflict"


def test_an_engine_that_is_away_hides_the_address_and_not_the_job(world, me, up, monkeypatch):
    def away(*_: object) -> None:
        raise Unavailable("The engine does not answer.")

    monkeypatch.setattr(world.engine, "servers", away)
    assert serving(me, up) is None
    assert me.get(f"{JOBS}{up.pk}/notebook/").status_code == 503


def test_a_stop_is_its_normal_end_and_gives_everything_back(world, ada, up):
    world.passes(600)
    world.now += timedelta(days=1)
    world.settle()
    assert world.again(up).phase == "RUNNING"
    job_stop(user=ada, job=world.again(up))
    world.until_quiet()
    job = world.again(up)
    assert (job.phase, job.reason, job.message) == ("STOPPED", "Stopped", "")
    assert not world.engine.has(job)
    assert not job.reservations.filter(released_at__isnull=True).exists()


def test_the_end_of_its_time_stops_it_and_says_so(world, ada):
    job = world.launch(ada, **SERVERS, max_runtime=600)
    world.until_running(job)
    world.until_quiet()
    job = world.again(job)
    assert (job.phase, job.reason) == ("STOPPED", "DeadlineExceeded")
    assert "time limit of 600 s" in job.message
    assert JobAttempt.objects.get(job=job).phase == "STOPPED"
    assert not world.engine.has(job)


def test_a_server_that_is_lost_for_good_fails_the_job_in_plain_words(world, me, up):
    world.engine.set(up, Role.PS, 0, TaskPhase.FAILED, exit_code=1, reason="ServerEnded")
    world.until_quiet()
    job = world.again(up)
    assert (job.phase, job.reason) == ("FAILED", "ServerEnded")
    assert job.message == "Parameter server 0 exited with exit code 1, but a server runs until it is stopped."
    assert me.get(f"{JOBS}{up.pk}/why/").json()["remedy"].startswith("Read the end of its log.")


def test_the_order_of_a_task_has_no_code(up):
    order = task_of(up).get("/api/v1/task/order/", {"role": "ps", "index": 0}).json()
    assert order["code"] is None
    assert order["spec"]["entry_point"] == ""
