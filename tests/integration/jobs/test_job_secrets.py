"""Jobs with secrets: only those of their own namespace, only over the task API, and never in a row of the job."""

from __future__ import annotations

import pytest
from django.db import connection

from apps.audit.models import AuditEvent
from apps.errors import Forbidden
from apps.jobs.models import Job, JobAttempt, JobEvent
from apps.jobs.services import job_retry, job_stop
from apps.jobs.worker.removal import remove
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.services import team_create
from apps.secrets.models import Kind, Secret, SecretUse
from apps.secrets.services import secret_set
from tests.integration.jobs.world import task_of
from yardmaster.errors import SpecRejected

ORDER = "/api/v1/task/order/"
VALUE = "hunter2-hunter2-hunter2"
SECRETS = [{"name": "TOKEN", "env": "API_TOKEN"}]


@pytest.fixture
def mine(ada) -> Namespace:
    return Namespace.objects.get(owner=ada)


@pytest.fixture
def secret(ada, mine) -> Secret:
    return secret_set(namespace=mine, name="TOKEN", value=VALUE, actor=ada)[0]


@pytest.fixture
def job(world, ada, secret) -> Job:
    job = world.launch(ada, secrets=SECRETS)
    world.settle()
    return world.again(job)


def order(job: Job, index: int = 0):
    return task_of(job, job.attempt).get(ORDER, {"role": "worker", "index": index})


def codes(error: pytest.ExceptionInfo[SpecRejected]) -> dict[str, str]:
    return {one.field: one.code for one in error.value.problems}


def test_a_task_gets_the_value_and_the_first_use_is_in_the_audit(job, secret):
    answer = order(job)
    assert answer.json()["secrets"] == [{"name": "TOKEN", "env": "API_TOKEN", "file": "", "value": VALUE}]
    assert answer.headers["Cache-Control"] == "no-store"
    order(job, index=1)
    (event,) = AuditEvent.objects.filter(action="secret.use")
    assert (event.facts, event.actor_id) == ({"name": "TOKEN", "job": str(job.pk)}, None)
    assert Secret.objects.get().last_used_at is not None


def test_the_value_is_in_no_table(job):
    order(job)
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            assert VALUE not in repr(cursor.fetchall()), table


def test_people_see_names_only(job, ada, with_token, client):
    job_json = with_token(ada).get(f"/api/v1/jobs/{job.pk}/").json()
    assert job_json["spec"]["secrets"] == SECRETS
    client.force_login(ada)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "API_TOKEN" in page
    assert VALUE not in page
    clone = client.get(f"/jobs/launch/?from={job.pk}").content.decode()
    assert 'value="TOKEN"' in clone
    assert VALUE not in clone


def test_an_unknown_secret_is_refused_and_so_is_one_of_another_namespace(world, ada, bob, secret):
    with pytest.raises(SpecRejected) as found:
        world.launch(bob, secrets=SECRETS)
    assert codes(found) == {"secrets.0.name": "unknown_secret"}
    theirs = Namespace.objects.get(owner=bob)
    secret_set(namespace=theirs, name="KEYS", value='{"a": 1}', actor=bob, kind=Kind.S3)
    with pytest.raises(SpecRejected):
        world.launch(bob, secrets=[{"name": "KEYS", "env": "X"}])


def test_secrets_that_are_too_large_together_are_refused(world, ada, mine):
    for number in range(9):
        secret_set(namespace=mine, name=f"S{number}", value="x" * (60 << 10), actor=ada)
    with pytest.raises(SpecRejected) as found:
        world.launch(ada, secrets=[{"name": f"S{number}", "env": f"V{number}"} for number in range(9)])
    assert codes(found) == {"secrets": "too_large"}


def test_a_viewer_cannot_launch_with_the_secrets_of_a_team(world, ada, bob, admin):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    secret_set(namespace=team, name="TOKEN", value=VALUE, actor=ada)
    Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    with pytest.raises(Forbidden):
        world.launch(bob, namespace=team, secrets=SECRETS)


def test_a_secret_in_use_is_not_deleted_by_accident(job, ada, mine, with_token):
    address = f"/api/v1/namespaces/{mine.pk}/secrets/TOKEN/"
    answer = with_token(ada).delete(address)
    assert (answer.status_code, answer.json()["code"]) == (409, "secret_in_use")
    assert "job digits" in answer.json()["detail"]
    assert with_token(ada).delete(f"{address}?force=1").status_code == 204
    gone = order(job)
    assert (gone.status_code, gone.json()["code"]) == (404, "secret_missing")
    assert "TOKEN" in gone.json()["detail"]


def test_a_retry_asks_again_whether_the_secrets_are_there(world, job, ada, secret):
    job_stop(user=ada, job=job)
    world.settle()
    world.passes(120)
    secret.delete()
    with pytest.raises(SpecRejected) as found:
        job_retry(user=ada, job=world.again(job))
    assert codes(found) == {"secrets.0.name": "unknown_secret"}
    secret_set(namespace=job.namespace, name="TOKEN", value="new-value", actor=ada)
    again = job_retry(user=ada, job=world.again(job))
    assert SecretUse.objects.filter(job_id=job.pk).count() == 1
    assert again.attempt == 2


def test_a_job_that_is_removed_uses_nothing_any_more(world, job):
    JobAttempt.objects.get(job=job)
    remove(job)
    assert not SecretUse.objects.exists()
    assert not JobEvent.objects.filter(job_id=job.pk).exists()
