"""Services in the portal: started once, waited for, used, extended, stopped when idle, and closed to strangers."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from apps.audit.models import AuditEvent
from apps.hosting import addresses, dialing
from apps.hosting.dialing import MOST_BODY
from apps.jobs.models import Job, JobEvent, TaskFact
from apps.jobs.selectors import resources_used
from apps.namespaces.models import Membership
from apps.namespaces.models import Role as Seat
from apps.serving.models import Service
from apps.serving.worker import services_sweep
from tests.integration.model_versions import job_of, version_of
from yardmaster.engines.base import Address
from yardmaster.job.spec import Role

SERVICES = "/api/v1/services/"
ROWS = {"instances": [[1, 2], [3, 4.5]]}


@pytest.fixture
def me(ada, signed_in):
    return signed_in(ada)


@pytest.fixture
def stranger(bob, signed_in):
    return signed_in(bob)


def start(client, version, **more):
    return client.post(SERVICES, {"model_version": str(version.pk), **more}, format="json")


def predict(client, version, body=ROWS):
    return client.post(f"/api/v1/model-versions/{version.pk}/predict/", body, format="json")


def until_over(world, job):
    world.until_quiet()
    assert world.again(job).is_over


@pytest.fixture
def service(world, me, version, served) -> Service:
    """One that is ready."""
    answer = start(me, version)
    assert answer.status_code == 201, answer.json()
    job = Job.objects.get(pk=answer.json()["job"])
    world.until_running(job)
    served.load(world.again(job))
    return Service.objects.get()


def test_a_start_makes_a_job_with_the_model_as_its_input_and_says_what_it_waits_for(world, me, version, served):
    answer = start(me, version, idle_limit=3600)
    assert answer.status_code == 201
    found = answer.json()
    assert (found["state"], found["number"], found["idle_limit"]) == ("queued", 1, 3600)
    job = Job.objects.get(pk=found["job"])
    assert job.strategy == "service"
    assert job.spec["inputs"][0]["model_version"] == str(version.pk)
    assert job.spec["program"] == "model_server"
    world.until_running(job)
    assert me.get(f"{SERVICES}{found['id']}/").json()["state"] == "loading"
    served.load(world.again(job))
    ready = me.get(f"{SERVICES}{found['id']}/").json()
    assert ready["state"] == "ready"
    assert ready["stops_at"]


def test_starting_what_runs_returns_it_and_a_job_list_does_not_show_it(me, version, service):
    again = start(me, version)
    assert again.status_code == 200
    assert again.json()["id"] == str(service.pk)
    assert Job.objects.filter(strategy="service").count() == 1
    assert str(service.job_id) not in [one["id"] for one in me.get("/api/v1/jobs/").json()["results"]]
    asked = me.get("/api/v1/jobs/?strategy=service").json()["results"]
    assert [one["id"] for one in asked] == [str(service.job_id)]
    assert [one["id"] for one in me.get(SERVICES).json()["results"]] == [str(service.pk)]


def test_predictions_come_through_the_portal_and_count_as_use(me, version, service):
    answer = predict(me, version)
    assert answer.status_code == 200
    assert answer.json() == {"predictions": [3, 7.5]}
    assert answer["X-Content-Type-Options"] == "nosniff"
    service.refresh_from_db()
    assert service.requests == 1


def test_what_the_model_server_refuses_is_a_problem_with_its_words(me, version, service):
    answer = predict(me, version, {"instances": [[1, 2, 3]]})
    assert (answer.status_code, answer.json()["code"]) == (422, "prediction_refused")
    assert "Expected x: float32 [?, 2]" in answer.json()["detail"]


def test_tensorflow_servings_own_addresses_are_passed_on_as_they_are(me, version, service, with_token, ada):
    base = f"{SERVICES}{service.pk}/v1/models/digits"
    client = with_token(ada, "jobs")
    assert client.get(base).json()["model_version_status"][0]["state"] == "AVAILABLE"
    assert "signature_def" in client.get(f"{base}/metadata").json()["metadata"]
    assert client.post(f"{base}:predict", ROWS, format="json").json() == {"predictions": [3, 7.5]}
    refused = client.post(f"{base}:predict", {"instances": [[1]]}, format="json")
    assert refused.status_code == 400
    assert set(refused.json()) == {"error"}
    assert client.get(f"{SERVICES}{service.pk}/v1/models/other").status_code == 404


def test_refusals_at_tensorflow_servings_addresses_have_the_key_that_its_clients_read(
    world, me, version, service, stranger
):
    base = f"{SERVICES}{service.pk}/v1/models/digits"
    for answer in (APIClient().get(base), stranger.get(base), me.get(f"{base}/labels/production"), me.get(f"{base}/x")):
        assert answer.status_code in (401, 404)
        assert answer.json()["error"].startswith(answer.json()["detail"])
    me.post(f"{SERVICES}{service.pk}/stop/")
    until_over(world, service.job)
    stopped = me.post(f"{base}:predict", ROWS, format="json")
    assert stopped.status_code == 503
    assert "not served" in stopped.json()["error"]
    assert "error" not in predict(me, version).json()


def test_the_state_of_a_model_that_is_not_there_yet_is_told(world, me, version, served):
    service = Service.objects.get(pk=start(me, version).json()["id"])
    base = f"{SERVICES}{service.pk}/v1/models/digits"
    assert me.get(base).json()["model_version_status"][0]["state"] == "START"
    assert me.get(f"{base}/versions/99").status_code == 404
    assert me.get(f"{base}x").status_code == 404
    world.until_running(service.job)
    found = me.get(base)
    assert found.status_code == 200
    assert found.json()["model_version_status"][0] == {
        "version": str(version.number), "state": "LOADING", "status": {"error_code": "OK", "error_message": ""},
    }  # fmt: skip
    assert me.get(f"{base}/metadata").status_code == 503
    served.load(world.again(service.job))
    assert me.get(base).json()["model_version_status"][0]["state"] == "AVAILABLE"


def test_a_label_is_the_stage_of_the_version_that_is_served(me, version, service):
    address = f"{SERVICES}{service.pk}/v1/models/digits/labels/production:predict"
    refused = me.post(address, ROWS, format="json")
    assert refused.status_code == 404
    assert "stage production" in refused.json()["detail"]
    type(version).objects.filter(pk=version.pk).update(stage="production")
    assert me.post(address, ROWS, format="json").json() == {"predictions": [3, 7.5]}


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "application/octet-stream", ""])
def test_the_body_is_json_whatever_kind_a_client_says_it_is(me, service, with_token, ada, kind):
    """`curl -d`, as TensorFlow Serving's pages have it, says that it sends a form."""
    address = f"{SERVICES}{service.pk}/v1/models/digits:predict"
    for client in (me, with_token(ada, "jobs")):
        answer = client.generic("POST", address, json.dumps(ROWS), content_type=kind)
        assert (answer.status_code, answer.json()) == (200, {"predictions": [3, 7.5]})


@pytest.mark.parametrize("verb", ["classify", "regress"])
def test_examples_go_to_the_method_that_is_asked_for(me, version, service, with_token, ada, verb):
    body, wanted = {"examples": [{"x": 1.0}]}, {"results": [verb, [{"x": 1.0}]]}
    for address in (
        f"/api/v1/model-versions/{version.pk}/{verb}/",
        f"{SERVICES}{service.pk}/v1/models/digits:{verb}",
        f"{staged(version)}:{verb}",
    ):
        assert me.post(address, body, format="json").json() == wanted
        assert with_token(ada, "read").post(address, body, format="json").status_code == 403


def staged(version, stage="production"):
    type(version).objects.filter(pk=version.pk).update(stage=stage)
    return f"/api/v1/models/{version.parent_id}/stages/{stage}/v1/models/digits"


def test_an_address_of_a_stage_answers_for_the_version_that_has_it(me, version, service, with_token, ada):
    base, client = staged(version), with_token(ada, "jobs")
    assert client.post(f"{base}:predict", ROWS, format="json").json() == {"predictions": [3, 7.5]}
    assert client.get(base).json()["model_version_status"][0]["version"] == "1"
    assert "signature_def" in client.get(f"{base}/metadata").json()["metadata"]
    assert client.post(f"{base}/labels/production:predict", ROWS, format="json").status_code == 200
    assert client.post(f"{base}/versions/1:predict", ROWS, format="json").status_code == 200
    refused = client.post(f"{base}:predict", {"instances": [[1]]}, format="json")
    assert (refused.status_code, set(refused.json())) == (400, {"error"})
    service.refresh_from_db()
    assert service.requests > 0, "it counts as use"


def test_when_the_stage_moves_no_earlier_version_answers_at_its_address(me, version, service, ada):
    base = staged(version)
    version.stage = ""
    version.save(update_fields=["stage"])
    none = me.post(f"{base}:predict", ROWS, format="json")
    assert (none.status_code, "No version of digits has the stage production" in none.json()["error"]) == (404, True)
    assert "yardmaster models promote digits@N --to production" in none.json()["error"]
    newer = version_of(job_of(ada, phase="SUCCEEDED"), source={"makers": version.source["makers"]})
    assert newer.parent_id == version.parent_id
    assert staged(newer) == base
    answer = me.post(f"{base}:predict", ROWS, format="json")
    assert answer.status_code == 503
    assert "Version 2 of digits is not served now. Start it" in answer.json()["error"]
    assert "yardmaster models serve digits@2" in answer.json()["error"]
    assert Service.objects.count() == 1, "a request starts nothing"


def test_an_address_of_a_stage_is_closed_as_that_of_a_service(me, version, service, stranger, ada, bob, with_token):
    base = staged(version)
    for client, status in ((APIClient(), 401), (stranger, 404), (with_token(ada, "read"), 403)):
        answer = client.post(f"{base}:predict", ROWS, format="json")
        assert answer.status_code == status
        assert answer.json()["error"].startswith(answer.json()["detail"])
    Membership.objects.create(namespace=ada.personal_namespace, user=bob, role=Seat.VIEWER)
    assert stranger.get(base).status_code == 403
    for stage, rest in (("archived", "v1/models/digits"), ("production", "healthz"), ("production", "v1/models/other")):
        found = me.get(f"/api/v1/models/{version.parent_id}/stages/{stage}/{rest}")
        assert found.status_code == 404


def test_a_packed_body_is_unpacked_up_to_a_bound(me, version, service):
    addresses = (f"{SERVICES}{service.pk}/v1/models/digits:predict", f"/api/v1/model-versions/{version.pk}/predict/")
    body = json.dumps(ROWS).encode()

    def sent(address, data, encoding="gzip"):
        return me.post(address, data, content_type="application/json", headers={"Content-Encoding": encoding})

    for address in addresses:
        assert sent(address, gzip.compress(body)).json() == {"predictions": [3, 7.5]}
        assert sent(address, body, "identity").status_code == 200
        assert sent(address, gzip.compress(b" " * (MOST_BODY + 1))).status_code == 413
        for bad in (body, gzip.compress(body)[:-9], gzip.compress(body) * 2):
            assert sent(address, bad).status_code == 400
        assert sent(address, body, "br").status_code == 400


@pytest.mark.parametrize("rest", ["statistics", "v1/models/digits/../../statistics", "healthz", "v1/models/a%2f..%2fb"])
def test_no_other_address_of_the_server_is_reached(me, service, rest):
    assert me.get(f"{SERVICES}{service.pk}/{rest}").status_code == 404


def test_strangers_find_nothing_and_a_token_that_may_only_read_uses_nothing(
    stranger, version, service, with_token, ada
):
    for path in ("", "v1/models/digits"):
        assert stranger.get(f"{SERVICES}{service.pk}/{path}").status_code == 404
    for path in ("stop/", "extend/", "v1/models/digits:predict"):
        assert stranger.post(f"{SERVICES}{service.pk}/{path}", ROWS, format="json").status_code == 404
    assert predict(stranger, version).status_code == 404
    assert start(stranger, version).status_code == 404
    assert stranger.get(SERVICES).json()["results"] == []
    assert predict(with_token(ada, "read"), version).status_code == 403


def test_a_version_that_is_not_served_says_how_to_start_it(me, version):
    answer = predict(me, version)
    assert answer.status_code == 503
    assert "yardmaster models serve" in answer.json()["remedy"] or "services" in answer.json()["remedy"]
    assert not Service.objects.exists()


def test_a_server_that_is_gone_is_said_to_restart_and_asked_again(world, me, version, service):
    predict(me, version)
    world.engine.served_at = Address("127.0.0.1", 9)
    addresses.address_forget(service.job)
    answer = predict(me, version)
    assert answer.status_code == 503
    assert "does not answer" in answer.json()["detail"]
    assert me.get(f"{SERVICES}{service.pk}/").json()["state"] == "loading"


def test_the_engine_is_asked_for_the_address_once_per_start_of_the_task(world, me, version, service, monkeypatch):
    asked, told = [], world.engine.address
    monkeypatch.setattr(world.engine, "address", lambda *words: asked.append(words) or told(*words))
    for _ in range(3):
        assert predict(me, version).status_code == 200
    assert len(asked) == 1
    TaskFact.objects.filter(job=service.job).update(restarts=1)
    assert predict(me, version).status_code == 200
    assert len(asked) == 2
    monkeypatch.setattr(addresses, "LASTS", -1.0)
    addresses.address_forget(service.job)
    for _ in range(2):
        predict(me, version)
    assert len(asked) == 4


def test_another_program_at_the_address_gets_no_second_request(world, me, version, service, served):
    assert predict(me, version).status_code == 200
    served.gate.key = "of another service"
    answer = predict(me, version)
    assert (answer.status_code, answer.json()["detail"]) == (
        503, "The service does not answer. It may be restarting.",
    )  # fmt: skip
    assert service.job_id not in addresses._known
    assert Service.objects.get().ready_at is None


def test_a_model_that_loads_is_not_idle_and_the_time_counts_from_its_answer(world, me, version, served):
    job = Job.objects.get(pk=start(me, version).json()["job"])
    world.until_running(job)
    now = world.again(job).started_at
    assert services_sweep(now + timedelta(minutes=30)) == 0
    assert me.get(f"{SERVICES}{Service.objects.get().pk}/").json()["state"] == "loading"
    served.load(world.again(job))
    assert services_sweep(now + timedelta(minutes=40)) == 0
    assert me.get(SERVICES).json()["results"][0]["state"] == "ready", "seen by the sweep"
    assert services_sweep(now + timedelta(minutes=54)) == 0
    assert services_sweep(now + timedelta(minutes=56)) == 1


def test_one_that_never_answers_is_stopped_in_the_end(world, me, version, served):
    job = Job.objects.get(pk=start(me, version).json()["job"])
    world.until_running(job)
    assert services_sweep(world.again(job).started_at + timedelta(minutes=134)) == 0
    assert services_sweep(world.again(job).started_at + timedelta(minutes=136)) == 1
    assert not Service.objects.get().stopped_idle


def test_a_viewer_sees_a_service_and_cannot_keep_it_running(me, version, service, ada, bob, signed_in):
    predict(me, version)
    Membership.objects.create(namespace=ada.personal_namespace, user=bob, role=Seat.VIEWER)
    before = Service.objects.get()
    viewer, base = signed_in(bob), f"{SERVICES}{service.pk}"
    assert viewer.get(f"{base}/").json()["state"] == "ready"
    assert viewer.get(reverse("model_try_page", args=[version.pk])).status_code == 200
    assert predict(viewer, version).status_code == 403
    assert viewer.get(f"{base}/v1/models/digits").status_code == 403
    for path in ("extend/", "stop/", "v1/models/digits:predict"):
        assert viewer.post(f"{base}/{path}", ROWS, format="json").status_code == 403
    after = Service.objects.get()
    assert (after.last_used_at, after.ready_at, after.requests) == (before.last_used_at, before.ready_at, 1)


def test_an_answer_that_is_too_large_is_not_passed_on(me, version, service, monkeypatch):
    monkeypatch.setattr(dialing.dial, "__kwdefaults__", {**dialing.dial.__kwdefaults__, "most": 1_000_000})
    answer = predict(me, version, {"instances": [[0, 0]]})
    assert (answer.status_code, answer.json()["code"]) == (422, "answer_too_large")


def test_it_is_stopped_when_no_one_used_it_and_its_quota_is_returned(world, me, version, service, ada):
    predict(me, version)
    service.refresh_from_db()
    used = max(service.last_used_at, world.again(service.job).started_at)
    assert services_sweep(used + timedelta(minutes=14)) == 0
    assert services_sweep(used + timedelta(minutes=16)) == 1
    assert services_sweep(used + timedelta(minutes=17)) == 0
    assert me.get(f"{SERVICES}{service.pk}/").json()["state"] == "stopping"
    until_over(world, world.again(service.job))
    found = me.get(f"{SERVICES}{service.pk}/").json()
    assert (found["state"], found["message"]) == ("stopped", "It was not used for 15m.")
    assert resources_used(ada.personal_namespace)["running_jobs"] == 0
    assert resources_used(ada.personal_namespace)["memory"] == 0
    assert predict(me, version).status_code == 503, "using a stopped service starts nothing"
    said = JobEvent.objects.filter(job=service.job_id).values_list("message", flat=True)
    assert "Stopped: not used for 15m." in said


def test_extending_it_counts_from_now_and_changes_its_limit(me, version, service):
    answer = me.post(f"{SERVICES}{service.pk}/extend/", {"idle_limit": 7200}, format="json")
    assert answer.json()["idle_limit"] == 7200
    assert services_sweep(timezone.now() + timedelta(minutes=100)) == 0


def test_a_start_of_what_runs_sets_the_limit_that_it_names(me, version, service):
    assert start(me, version, idle_limit=7200).json()["idle_limit"] == 7200
    assert services_sweep(timezone.now() + timedelta(minutes=100)) == 0
    assert start(me, version).json()["idle_limit"] == 7200, "none is named"
    assert start(me, version, idle_limit=1).status_code == 400


@pytest.mark.parametrize(("memory", "found"), [("2Gi", 2 << 30), (1 << 30, 1 << 30)])
def test_memory_is_bytes_or_an_amount(me, version, memory, found):
    job = Job.objects.get(pk=start(me, version, memory=memory).json()["job"])
    assert job.spec["roles"]["worker"]["memory"] == found


@pytest.mark.parametrize("memory", ["2 bananas", "1Mi", 5, -1, True, [], "1e99Gi"])
def test_memory_that_is_none_is_refused(me, version, memory):
    answer = start(me, version, memory=memory)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "memory"
    assert not Job.objects.filter(strategy="service").exists()


@pytest.mark.parametrize("limit", [0, 59, 10**12, -5])
def test_a_limit_that_is_none_is_refused(me, version, limit):
    answer = start(me, version, idle_limit=limit)
    assert answer.status_code == 400
    assert not Job.objects.filter(strategy="service").exists()


def test_stopped_and_started_again_it_is_the_same_service_with_one_job(world, me, version, service):
    stopping = me.post(f"{SERVICES}{service.pk}/stop/")
    assert stopping.json()["state"] == "stopping"
    assert start(me, version).json()["code"] == "still_stopping"
    until_over(world, world.again(service.job))
    again = start(me, version)
    assert again.status_code == 201
    assert again.json()["id"] == str(service.pk)
    assert again.json()["job"] != str(service.job_id)
    assert Job.objects.filter(strategy="service", deleted_at__isnull=True).count() == 1


def test_a_start_that_was_interrupted_is_stopped_and_the_next_one_has_a_job_of_its_own(world, me, version):
    start(me, version)
    Service.objects.update(job=None, starts=0)  # killed before it was written down
    job = Job.objects.get(strategy="service")
    assert services_sweep(timezone.now() + timedelta(minutes=5)) == 1
    until_over(world, job)
    again = start(me, version)
    assert (again.status_code, again.json()["state"]) == (201, "queued")
    assert again.json()["job"] != str(job.pk)


def test_the_sweep_of_services_leaves_the_jobs_of_other_kinds_alone(me, version):
    start(me, version)
    Service.objects.update(job=None)
    Job.objects.filter(strategy="service").update(request_key=f"services:{version.pk}:1")
    assert services_sweep(timezone.now() + timedelta(minutes=5)) == 0


def test_who_started_and_stopped_a_service_is_recorded_with_its_model(me, version, service):
    me.post(f"{SERVICES}{service.pk}/stop/")
    for action in ("service.start", "service.stop"):
        event = AuditEvent.objects.get(action=action)
        assert (event.actor_name, event.subject) == ("ada", f"service:{service.pk}")
        assert event.facts == {"name": "digits", "version": 1}


def test_a_model_that_cannot_be_loaded_fails_with_the_reason(world, me, version, service):
    job = world.again(service.job)
    world.engine.fail(job.key, Role.WORKER, 0, 65, "ModelNotLoaded", "the SavedModel has no signature")
    until_over(world, job)
    found = me.get(f"{SERVICES}{service.pk}/").json()
    assert found["state"] == "failed"
    assert "could not serve the model" in found["message"]
    assert "Export the model again" in found["remedy"]


def test_a_service_is_no_job_that_people_launch(me, service):
    spec = service.job.spec
    answer = me.post("/api/v1/jobs/", {"spec": spec}, format="json")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["code"] == "not_launched"
