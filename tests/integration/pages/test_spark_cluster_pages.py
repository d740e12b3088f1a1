"""Spark clusters on the pages of administrators, by the API, and on the launch page."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from django.test import Client

from apps.audit.models import AuditEvent
from apps.jobs.models import Job
from apps.namespaces.services import team_create
from apps.spark import worker
from apps.spark.models import SparkCluster
from apps.spark.sealed import secret_of
from tests.integration.jobs.conftest import stores
from tests.integration.jobs.test_job_spark_clusters import FACTS, add, launch, spark_world
from tests.integration.pages.test_launch_images import options
from tests.integration.pages.test_launch_page import rows

__all__ = ["spark_world", "stores"]

pytestmark = pytest.mark.django_db
URL = "/api/v1/spark-clusters/"
LIST, NEW, PAGE = (f"/admin/spark-clusters/{end}" for end in ("", "new/", "cluster/analytics/"))
SAID = {
    "name": "analytics", "master": "spark://one:7077,two:7077", "driver_address": "portal.example.org",
    "python": "python3", "secret": "swordfish", "most_executors": "8", "most_memory": "64Gi", "everyone": "on",
    "enabled": "on", "namespaces": "",
}  # fmt: skip


@pytest.fixture
def office(client: Client, admin) -> Client:
    client.force_login(admin)
    return client


def test_a_cluster_is_registered_changed_checked_and_removed_on_its_page(office):
    assert "No Spark clusters yet" in office.get(LIST).content.decode()
    assert office.post(NEW, SAID).headers["Location"] == PAGE
    made = SparkCluster.objects.get()
    assert (made.most_executors, made.most_memory, made.most_cores_at_once) == (8, 64 << 30, None)
    assert secret_of(made) == "swordfish"
    page = office.get(PAGE).content.decode()
    assert "swordfish" not in page
    assert "A worker is checking whether the master answers" in page
    assert "spark: {cluster: analytics," in page
    assert office.post(PAGE, SAID | {"secret": "", "most_cores_at_once": "12"}).status_code == 302
    made.refresh_from_db()
    assert (secret_of(made), made.most_cores_at_once) == ("swordfish", 12)
    assert office.post(PAGE, SAID | {"secret": "", "no_secret": "on"}).status_code == 302
    made.refresh_from_db()
    assert not made.has_secret
    assert office.post(f"{PAGE}check/").status_code == 302
    assert "0 of 12" not in office.get(LIST).content.decode()
    assert office.post(f"{PAGE}remove/").headers["Location"] == LIST
    assert not SparkCluster.objects.exists()
    actions = list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))
    ends = ("create", "change", "change", "secret", "check", "delete")
    assert [one for one in actions if one.startswith("spark")] == [f"spark_cluster.{end}" for end in ends]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("master", "yarn", "YARN cannot be registered"),
        ("master", "k8s://https://10.0.0.1:6443", "Spark on Kubernetes cannot be registered"),
        ("master", "spark://one", "not the address of a Spark standalone master"),
        ("master", "spark://one:99999", "port from 1 to 65535"),
        ("driver_address", "a b", "an IPv4 address or a host name"),
        ("name", "A B", "lowercase letters"),
        ("most_executors", "0", "at least 1"),
        ("namespaces", "nowhere", "untick"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(office, field: str, value: str, words: str):
    answer = office.post(NEW, SAID | {field: value})
    assert answer.status_code == 400
    assert words in str(answer.context["form"].errors[field])
    assert not SparkCluster.objects.exists()


def test_the_api_shows_users_what_they_may_use_and_never_the_secret(admin, ada, bob, signed_in):
    root, team = signed_in(admin), team_create(slug="vision", title="Vision", manager=ada, actor=admin)
    made = root.post(URL, {"name": "all", **FACTS}, format="json")
    assert made.status_code == 201, made.content
    assert (made.json()["has_secret"], made.json()["state"]) == (True, "checking")
    root.post(URL, {"name": "some", **FACTS, "namespaces": ["vision"]}, format="json")
    root.post(URL, {"name": "off", **FACTS, "enabled": False}, format="json")

    def names(client, query: str = "") -> list[str]:
        answer = client.get(URL + query)
        assert "swordfish" not in answer.content.decode()
        return [one["name"] for one in answer.json()["results"]]

    assert names(root) == ["off", "some", "all"]
    assert names(signed_in(ada)) == ["some", "all"]
    assert names(signed_in(ada), f"?namespace={team.slug}") == ["some", "all"]
    assert names(signed_in(bob)) == ["all"]
    assert signed_in(bob).get(f"{URL}some/").status_code == 404
    assert signed_in(bob).patch(f"{URL}all/", {"enabled": False}, format="json").status_code == 403
    assert root.patch(f"{URL}all/", {"master": "yarn"}, format="json").json()["errors"][0]["code"] == "not_standalone"
    assert root.post(f"{URL}all/check/").status_code == 200
    assert root.delete(f"{URL}off/").status_code == 204


def test_a_cluster_that_jobs_name_is_not_removed(spark_world, ada, admin, signed_in, office):
    add(admin)
    job = launch(spark_world, ada)
    answer = signed_in(admin).delete(f"{URL}gpu-farm/")
    assert (answer.status_code, answer.json()["code"]) == (409, "spark_cluster_in_use")
    assert f"job {job.name}" in office.get("/admin/spark-clusters/cluster/gpu-farm/").content.decode()
    shown = office.get(f"/jobs/{job.pk}/").content.decode()
    assert "Spark cluster" in shown
    assert "2 executors with 1 core and 1.0 GiB each" in shown


def test_a_check_says_what_answers(admin):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        row = add(admin, master=f"spark://127.0.0.1:{port}")
        threading.Thread(target=_answer_as_ssh, args=(server,), daemon=True).start()
        worker.spark_check(row.pk)
        row.refresh_from_db()
    assert (row.state, row.problem) == (
        "unreachable",
        f"127.0.0.1:{port}: the server that answers is not a Spark master",
    )
    SparkCluster.objects.update(state="checking")
    worker.spark_check(row.pk)
    row.refresh_from_db()
    assert (row.state, row.problem) == ("unreachable", f"127.0.0.1:{port}: Connection refused")


def _answer_as_ssh(server: socket.socket) -> None:
    connection, _ = server.accept()
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    connection.close()


def test_the_launch_page_offers_clusters_where_spark_is_chosen(spark_world, client, ada, bob, admin):
    client.force_login(ada)
    code = spark_world.code_version(ada, {"train.py": "print(1)\n"})
    data: dict[str, Any] = {
        "form": "f1", "name": "events", "strategy": "spark", "code": str(code.pk), "entry_point": "train.py",
        "roles-executor-replicas": "2", "roles-driver-replicas": "1", **rows("inputs"), **rows("environment"),
    }  # fmt: skip

    def page(**changes: str) -> str:
        return client.post("/jobs/launch/", data | {"take": "place"} | changes).content.decode()

    assert options(page(), "spark_cluster") == []
    add(admin, "analytics", most_executors=4)
    assert options(page(), "spark_cluster") == ["", "analytics"]
    assert options(page(strategy="single"), "spark_cluster") == []
    chosen = {"spark_cluster": "analytics", "spark_executors": "3", "spark_cores": "2", "spark_memory": "2Gi"}
    assert "roles-executor-replicas" in page()
    shown = page(**chosen)
    assert "roles-executor-replicas" not in shown
    assert "on the Spark cluster analytics" in shown
    refused = client.post("/jobs/launch/", data | chosen | {"spark_executors": "9"})
    assert "at most 4 executors" in str(refused.context["form"].errors["spark_executors"])
    assert client.post("/jobs/launch/", data | chosen).status_code == 302
    job = Job.objects.get()
    assert job.spec["spark"] == {"cluster": "analytics", "executors": 3, "cores": 2, "memory": 2 << 30}
    assert list(job.spec["roles"]) == ["driver"]
    again = client.get(f"/jobs/launch/?from={job.pk}").content.decode()
    assert 'value="analytics" selected' in again
