"""Jobs with a data connection: of their own namespace alone, and its secrets in the task's order alone."""

from __future__ import annotations

import pytest

from apps.connections.models import DataConnection
from apps.connections.services import connection_set
from apps.jobs.models import Job
from apps.namespaces.models import Namespace
from apps.secrets.models import Secret, SecretUse
from apps.secrets.services import secret_set
from tests.integration.jobs.world import task_of
from yardmaster.errors import SpecRejected

VALUES = {"CERT": "a certificate with a key", "WHO": "the-reader", "PW": "hunter2-hunter2"}
CATS = {"name": "cats", "cache": "IMAGES"}


@pytest.fixture
def mine(ada) -> Namespace:
    namespace = Namespace.objects.get(owner=ada)
    for name, value in VALUES.items():
        secret_set(namespace=namespace, name=name, value=value, actor=ada)
    return namespace


@pytest.fixture
def cats(ada, mine) -> DataConnection:
    values = {
        "hosts": "one.example.org,two.example.org:10801", "tls": True, "certificate": "CERT", "username": "WHO",
        "password": "PW",
    }  # fmt: skip
    return connection_set(namespace=mine, name="cats", actor=ada, values=values)[0]


@pytest.fixture
def job(world, ada, cats) -> Job:
    job = world.launch(ada, connection=CATS, environment={"EPOCHS": "3"})
    world.settle()
    return world.again(job)


def order(job: Job):
    return task_of(job, job.attempt).get("/api/v1/task/order/", {"role": "worker", "index": 0})


def codes(error: pytest.ExceptionInfo[SpecRejected]) -> dict[str, str]:
    return {one.field: one.code for one in error.value.problems}


def test_a_task_gets_hosts_cache_and_the_values_of_the_secrets(job) -> None:
    answer = order(job).json()
    assert answer["spec"]["environment"] == {
        "EPOCHS": "3", "IGNITE_DATASET_HOST": "one.example.org,two.example.org:10801", "IGNITE_DATASET_PORT": "10800",
        "IGNITE_DATASET_CACHE_NAME": "IMAGES",
    }  # fmt: skip
    assert answer["secrets"] == [
        {
            "name": "CERT", "env": "IGNITE_DATASET_CERTFILE", "file": "data-connection/client.pem",
            "value": VALUES["CERT"],
        },
        {"name": "WHO", "env": "IGNITE_DATASET_USERNAME", "file": "", "value": VALUES["WHO"]},
        {"name": "PW", "env": "IGNITE_DATASET_PASSWORD", "file": "", "value": VALUES["PW"]},
    ]  # fmt: skip
    assert job.spec["environment"] == {"EPOCHS": "3"}
    assert set(SecretUse.objects.filter(job_id=job.pk).values_list("secret__name", flat=True)) == set(VALUES)


def test_tasks_that_start_later_get_what_the_connection_says_then(job, ada, mine, cats) -> None:
    connection_set(namespace=mine, name="cats", actor=ada, values={"hosts": "three.example.org"})
    answer = order(job).json()
    assert answer["spec"]["environment"]["IGNITE_DATASET_HOST"] == "three.example.org"
    assert answer["secrets"] == []


def test_a_connection_of_another_namespace_is_unknown(world, bob, cats) -> None:
    with pytest.raises(SpecRejected) as error:
        world.launch(bob, connection=CATS)
    assert codes(error) == {"connection.name": "unknown_connection"}


def test_a_connection_whose_secret_is_gone_is_refused_before_the_launch(world, ada, cats) -> None:
    Secret.objects.filter(name="PW").delete()
    with pytest.raises(SpecRejected) as error:
        world.launch(ada, connection=CATS)
    assert codes(error) == {"connection.name": "secret_missing"}


def test_a_connection_is_kept_while_jobs_need_it(job, mine, ada, signed_in) -> None:
    client, path = signed_in(ada), f"/api/v1/namespaces/{mine.pk}/connections/cats/"
    refused = client.delete(path)
    assert (refused.status_code, refused.json()["code"]) == (409, "connection_in_use")
    assert client.delete(f"{path}?force=1").status_code == 204
    assert order(job).json()["code"] == "connection_missing"


def test_the_launch_page_offers_connections_and_repeats_the_choice(client, ada, mine, job) -> None:
    client.force_login(ada)
    new = client.get("/jobs/launch/").content.decode()
    assert '<option value="cats">cats</option>' in new
    clone = client.get(f"/jobs/launch/?from={job.pk}").content.decode()
    assert '<option value="cats" selected>cats</option>' in clone
    assert 'value="IMAGES"' in clone
    assert "connection: {name: cats, cache: IMAGES}" in clone
    assert "cats" in client.get(f"/jobs/{job.pk}/").content.decode()
    DataConnection.objects.all().delete()
    without = client.get("/jobs/launch/").content.decode()
    assert f'<a href="/namespaces/{mine.pk}/connections/">register a data connection</a>' in without
