"""The panel "Try it": it starts nothing by itself, and leads from the start to a prediction."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.jobs.models import Job
from apps.namespaces.models import Quota
from apps.serving.models import Service

HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def me(ada, signed_in):
    return signed_in(ada)


def at(name, version):
    return reverse(f"model_try_{name}", args=[version.pk])


def test_from_the_start_over_waiting_to_a_prediction(world, me, version, served):
    panel = me.get(at("page", version), **HTMX)
    assert b"Start</button>" in panel.content
    assert not Service.objects.exists(), "looking starts nothing"
    waits = me.post(at("start", version), {"idle_limit": "3600"}, format="multipart", **HTMX)
    assert b"Waiting in the queue" in waits.content
    assert b'hx-trigger="every 2s"' in waits.content
    job = Job.objects.get(strategy="service")
    world.until_running(job)
    assert b"Loading the model" in me.get(at("page", version), **HTMX).content
    served.load(world.again(job))
    ready = me.get(at("page", version), **HTMX).content
    assert ready.count(b'name="in-x"') == 2
    assert b"float, 2" in ready
    filled = {"signature": "serving_default", "in-x": ["1", "2"]}
    assert b"3" in me.post(at("predict", version), filled, format="multipart", **HTMX).content
    whole = me.post(at("predict", version), filled, format="multipart")
    assert whole.status_code == 200
    assert b"<html" in whole.content
    wrong = me.post(at("predict", version), filled | {"in-x": ["1", "much"]}, format="multipart", **HTMX)
    assert b"write a number in every box" in wrong.content
    assert b"Stopping" in me.post(at("stop", version), format="multipart", **HTMX).content


def test_the_addresses_for_programs_are_shown_with_that_of_the_stage(world, me, version, served):
    me.post(at("start", version), {"idle_limit": "900"}, format="multipart", **HTMX)
    job = Job.objects.get(strategy="service")
    world.until_running(job)
    served.load(world.again(job))
    service = f"http://testserver/api/v1/services/{Service.objects.get().pk}/v1/models/digits:predict"
    stage = f"http://testserver/api/v1/models/{version.parent_id}/stages/production/v1/models/digits:predict"
    page = me.get(at("page", version), **HTMX).content.decode()
    assert service in page
    assert stage not in page
    type(version).objects.filter(pk=version.pk).update(stage="production")
    page = me.get(at("page", version), **HTMX).content.decode()
    assert service in page
    assert stage in page
    assert me.get(stage.removeprefix("http://testserver").removesuffix(":predict")).status_code == 200


def test_without_a_script_each_step_leads_back_to_the_page(me, version, served):
    answer = me.post(at("start", version), {"idle_limit": "900"}, format="multipart")
    assert answer.status_code == 302
    assert answer["Location"] == at("page", version)
    assert b"Try digits" in me.get(at("page", version)).content


def test_a_start_takes_memory_cpu_and_engine(me, version, served, settings):
    engine = settings.YARDMASTER_DEFAULT_ENGINE
    filled = {"idle_limit": "3600", "memory": "3Gi", "cpu": "500m", "engine": engine}
    assert b"Waiting in the queue" in me.post(at("start", version), filled, format="multipart", **HTMX).content
    job = Job.objects.get(strategy="service")
    worker = job.spec["roles"]["worker"]
    assert (worker["memory"], worker["cpu"], job.engine) == (3 << 30, 0.5, engine)
    assert Service.objects.get().idle_seconds == 3600


def test_the_form_has_the_defaults_and_what_the_quota_leaves(me, version, served, ada):
    Quota.objects.filter(namespace=ada.personal_namespace).update(memory=5 << 30, cpu=None)
    panel = me.get(at("page", version), **HTMX).content.decode()
    assert 'placeholder="2Gi"' in panel
    assert ": memory 5 GiB, CPU cores no limit." in panel
    assert '<details class="mb-3">' in panel


@pytest.mark.parametrize(
    ("filled", "said"),
    [
        ({"memory": "much"}, "Enter an amount between 64Mi and 64Ti"), ({"memory": "1Mi"}, "between 64Mi and 64Ti"),
        ({"cpu": "0"}, "Enter a number of cores"), ({"cpu": "5000"}, "Enter a number of cores"),
        ({"engine": "other"}, "Select a valid choice"),
    ],
)  # fmt: skip
def test_what_cannot_be_started_is_said_at_its_field_and_stays_filled_in(me, version, served, filled, said):
    panel = me.post(at("start", version), filled, format="multipart", **HTMX).content.decode()
    ((name, value),) = filled.items()
    assert said in panel.partition(f'id="try-{name}_error"')[2].partition("</div>")[0]
    assert f'aria-describedby="try-{name}_error"' in panel
    assert '<details class="mb-3" open>' in panel
    assert name == "engine" or f'value="{value}"' in panel
    assert not Job.objects.filter(strategy="service").exists()


def test_a_start_that_never_fits_says_so_above_the_form(me, version, served, ada):
    Quota.objects.filter(namespace=ada.personal_namespace).update(memory=1 << 30)
    panel = me.post(at("start", version), {"memory": "8Gi"}, format="multipart", **HTMX).content.decode()
    assert "It could never start" in panel
    assert 'value="8Gi"' in panel


def test_a_stranger_finds_no_panel(version, served, bob, signed_in):
    stranger = signed_in(bob)
    assert stranger.get(at("page", version)).status_code == 404
    for name in ("start", "stop", "extend", "predict"):
        assert stranger.post(at(name, version)).status_code == 404
    assert not Service.objects.exists()


def test_the_page_of_the_version_fetches_the_panel_afterwards(me, version, served):
    page = me.get(reverse("model_version_page", args=[version.pk])).content.decode()
    assert f'hx-get="{at("page", version)}"' in page
