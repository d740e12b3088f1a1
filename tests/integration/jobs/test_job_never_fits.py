"""A job that can never start: queued only where that is accepted, told apart from those that wait, and healed alone."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.urls import reverse

from apps.jobs.models import Job
from apps.namespaces.models import Namespace, Quota
from yardmaster.engines.base import Capacity
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Resources

HUGE = {"worker": {"replicas": 2, "cpu": 30, "memory": "1Gi"}, "ps": {"replicas": 1, "cpu": 30, "memory": "1Gi"}}
"""90 cores, of which the engine has 64; each task fits by itself."""


@pytest.fixture
def signed(client, ada):
    client.force_login(ada)
    return client


@pytest.fixture
def post(signed, world, ada):
    def launch(roles: Any = HUGE, **more: Any) -> Any:
        data = {"spec": world.spec_json(ada, roles=roles), **more}
        return signed.post("/api/v1/jobs/", data, content_type="application/json")

    return launch


def limit_cpu(ada, cpu: int | None) -> None:
    Quota.objects.update_or_create(namespace=Namespace.objects.get(owner=ada), defaults={"cpu": cpu})


def test_the_api_asks_first_with_the_numbers_and_what_could_start(post):
    refused = post()
    body = refused.json()
    assert (refused.status_code, body["code"], body["reason"]) == (409, "never_fits", "ExceedsCapacity")
    [numbers] = body["numbers"]
    assert (numbers["pool"], numbers["resource"], numbers["needs"], numbers["limit"]) == ("capacity", "cpu", 90, 64)
    assert body["largest_fit"] == {"worker": 1, "ps": 1}
    assert "accept_never_fits" in body["remedy"]
    assert not Job.objects.exists()


def test_accepted_it_is_queued_and_says_at_once_that_it_can_never_start(post, signed):
    made = post(accept_never_fits=True)
    assert made.status_code == 201
    job = made.json()
    assert (job["queue_state"], job["reason"], job["position"]) == ("never_fits", "ExceedsCapacity", None)
    why = signed.get(f"/api/v1/jobs/{job['id']}/why/").json()
    assert (why["queue_state"], why["position"], len(why["numbers"])) == ("never_fits", None, 1)


@pytest.mark.parametrize("wrong", ["yes please", 1.5, [], None])
def test_nothing_but_true_accepts_it(post, wrong):
    assert post(accept_never_fits=wrong).status_code == 400
    assert not Job.objects.exists()


def test_a_quota_that_is_smaller_than_the_job_asks_too(post, ada):
    limit_cpu(ada, 2)
    body = post({"worker": {"replicas": 2, "cpu": 1}, "ps": {"cpu": 1}}).json()
    assert (body["code"], body["reason"], body["largest_fit"]) == (
        "never_fits",
        "ExceedsMaxQuota",
        {"worker": 1, "ps": 1},
    )


@pytest.mark.parametrize("name", ["amd.com/gpu", "nvidia.com/mig-1g.5gb"])
def test_without_gpus_in_the_quota_no_other_accelerator_can_be_had(post, ada, world, name):
    total = Resources(64, 256 << 30, extended={name: 8})
    world.engine._capacity = Capacity(total, total, total)
    worker = {"worker": {"replicas": 1, "cpu": 1, "memory": "1Gi", "extended": {name: 4}}}
    shape = {**worker, "ps": {"replicas": 1, "cpu": 1, "memory": "1Gi"}}
    assert post(shape).status_code == 201
    own = Namespace.objects.get(owner=ada)
    Quota.objects.update_or_create(namespace=own, defaults={"gpus": 0})
    refused = post(shape).json()
    assert (refused["code"], refused["reason"]) == ("never_fits", "ExceedsMaxQuota")
    [numbers] = refused["numbers"]
    assert (numbers["pool"], numbers["resource"], numbers["limit"]) == ("quota", name, 0)
    Quota.objects.filter(namespace=own).update(extended={name: 8})
    assert post(shape).status_code == 201


def test_what_merely_waits_is_not_asked_about(post, ada, world):
    limit_cpu(ada, 3)
    world.until_running(world.launch(ada))
    made = post({"worker": {"replicas": 2, "cpu": 1}, "ps": {"cpu": 1}})
    assert made.status_code == 201
    world.settle()
    assert Job.objects.get(pk=made.json()["id"]).reason == "WaitingForQuota"


def test_while_the_engine_does_not_answer_nothing_is_asked(post, world):
    world.engine.error = Unavailable("The engine does not answer.")
    assert post().status_code == 201


def test_a_retry_asks_too(post, signed, ada, world):
    job = world.launch(ada)
    world.until_running(job)
    world.engine.succeed(job)
    world.until_quiet()
    limit_cpu(ada, 1)
    address = f"/api/v1/jobs/{job.pk}/retry/"
    refused = signed.post(address, {}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "never_fits")
    assert world.again(job).attempt == 1
    page = signed.post(reverse("job_retry_page", args=[job.pk]))
    assert page.status_code == 409
    assert "Queue anyway" in page.content.decode()
    assert signed.post(reverse("job_retry_page", args=[job.pk]), {"accept_never_fits": "1"}).status_code == 302
    assert (world.again(job).attempt, world.again(job).reason) == (2, "ExceedsMaxQuota")


def test_when_limits_change_it_becomes_an_ordinary_waiting_job_and_starts_by_itself(post, signed, ada, world):
    limit_cpu(ada, 2)
    job = Job.objects.get(
        pk=post({"worker": {"replicas": 2, "cpu": 1}, "ps": {"cpu": 1}}, accept_never_fits=True).json()["id"]
    )
    Job.objects.update(queued_at=world.now, next_look_at=world.now)
    world.settle()
    assert world.again(job).reason == "ExceedsMaxQuota"
    limit_cpu(ada, 3)
    world.until_running(job)
    assert signed.get(f"/api/v1/jobs/{job.pk}/").json()["queue_state"] is None


def test_lists_tell_it_apart_from_those_that_wait(post, signed, ada, world):
    never = post(accept_never_fits=True).json()["id"]
    waits = post({"worker": {"replicas": 2, "cpu": 1}, "ps": {"cpu": 1}}).json()["id"]

    def listed(query: str) -> list[str]:
        return [row["id"] for row in signed.get(f"/api/v1/jobs/?{query}").json()["results"]]

    assert listed("queue_state=never_fits") == [never]
    assert listed("queue_state=waiting") == [waits]
    assert listed("reason=ExceedsCapacity") == [never]
    assert signed.get("/api/v1/jobs/?queue_state=other").status_code == 400
    page = signed.get("/jobs/").content.decode()
    row = re.search(rf'id="job-{never}".*?</tr>', page, re.S)
    assert row
    assert "Can never start" in row[0]
    assert "Queued" not in row[0]
    assert "ahead" not in row[0]
    other = re.search(rf'id="job-{waits}".*?</tr>', page, re.S)
    assert other
    assert "Queued" in other[0]
    only = signed.get("/jobs/?queue_state=never_fits").content.decode()
    assert never in only
    assert waits not in only
    assert "Can never start" in signed.get(f"/jobs/{never}/").content.decode()


def test_home_counts_it_apart(post, signed):
    post(accept_never_fits=True)
    page = signed.get("/").content.decode()
    assert "Can never start" in page
    assert re.search(r'id="home-figure-QUEUED".*?<strong>0</strong>', page, re.S)


# --- the form --------------------------------------------------------------------------------------------------------


@pytest.fixture
def form(world, ada) -> dict[str, str]:
    return {
        "form": "f1", "name": "digits", "strategy": "between_graph", "code": str(world.code_version(ada).pk),
        "entry_point": "train.py", "roles-worker-replicas": "2", "roles-worker-cpu": "30", "roles-ps-replicas": "1",
        "roles-ps-cpu": "30", "namespace": ada.personal_namespace.slug,
        "inputs-TOTAL_FORMS": "0", "inputs-INITIAL_FORMS": "0",
        "environment-TOTAL_FORMS": "0", "environment-INITIAL_FORMS": "0",
    }  # fmt: skip


def test_the_form_asks_with_the_numbers_and_keeps_what_was_typed(signed, form):
    answer = signed.post("/jobs/launch/", form)
    assert answer.status_code == 409
    page = html.unescape(answer.content.decode())
    assert "Queue a job that can never start?" in page
    assert re.search(r"<td>90</td>\s*<td>64</td>", page)
    assert "1 worker, 1 parameter server" in page
    assert 'value="shape:worker=1,ps=1"' in page
    assert 'name="roles-worker-cpu" value="30"' in page
    assert not Job.objects.exists()


def test_confirmed_it_is_launched_and_a_changed_form_asks_again(signed, form):
    page = signed.post("/jobs/launch/", form).content.decode()
    found = re.search(r'name="accept_never_fits" value="([0-9a-f]{64})"', page)
    assert found
    changed = form | {"roles-worker-replicas": "3", "accept_never_fits": found[1]}
    assert signed.post("/jobs/launch/", changed).status_code == 409
    assert not Job.objects.exists()
    accepted = signed.post("/jobs/launch/", form | {"accept_never_fits": found[1]})
    assert accepted.headers["Location"] == f"/jobs/{Job.objects.get().pk}/"


def test_the_shape_that_could_start_launches_without_a_question(signed, form):
    signed.post("/jobs/launch/", form)
    taken = signed.post("/jobs/launch/", form | {"take": "shape:worker=1,ps=1"}).content.decode()
    assert "Queue a job that can never start?" not in taken
    assert signed.post("/jobs/launch/", form | {"roles-worker-replicas": "1"}).status_code == 302
