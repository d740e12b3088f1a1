"""A data connection to a real cluster: a worker's look at it, each thing that can be wrong, and a job that reads it."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.ignite.conftest import Ignite
from tests.real.portal import free_port
from tests.real.scene import Scene, scene
from yardmaster.ignite.looking import Wanted, look
from yardmaster.ignite.nodes import ignite_policy
from yardmaster.ignite.refusals import NotLooked

pytestmark = [pytest.mark.ignite, pytest.mark.slow]
LOCAL = ignite_policy(["127.0.0.1"], ["1-65535"])
SCRIPT = """
import os
from yardmaster_runner import data

rows = data.ignite(batch=None, fields=["key", "val.name"])
print("rows", sum(1 for _ in rows), os.environ["IGNITE_DATASET_CACHE_NAME"], os.environ["IGNITE_DATASET_PASSWORD"])
"""


def wanted(server: Ignite, **secrets: str | Path) -> Wanted:
    read = {name: one.read_text() if isinstance(one, Path) else one for name, one in secrets.items()}
    return Wanted([("127.0.0.1", server.ports[0])], read)


def good(server: Ignite) -> dict[str, str | Path]:
    return {"certificate": server.keys / "client.pem", "username": "ignite", "password": "ignite"}


def refused(what: Wanted) -> tuple[str, str]:
    with pytest.raises(NotLooked) as error:
        look(what, LOCAL)
    problem = error.value.problem
    assert problem.message.endswith((".", "?")), problem
    assert problem.remedy
    return problem.field, problem.code


def test_caches_tables_partitions_rows_and_fields_are_listed(plain: Ignite) -> None:
    caches = {one["name"]: one for one in look(wanted(plain), LOCAL)["caches"]}
    assert (caches["one-numbers"]["rows"], caches["one-numbers"]["partitions"]) == (3000, 8)
    assert {"name": "val.exact", "type": "double"} in caches["one-numbers"]["columns"]
    kittens = caches["SQL_PUBLIC_KITTENS"]
    assert (kittens["tables"], kittens["rows"]) == (["PUBLIC.KITTENS"], 3)
    assert {"name": "ID", "type": "Long", "is_key": True} in kittens["columns"]
    names = [one["name"] for one in kittens["columns"]]
    assert dict(zip(names, kittens["preview"][1], strict=True)) == {"ID": "2", "NAME": "SOFT KITTY", "WEIGHT": None}
    assert [one["problem"] for one in caches.values()] == [""] * len(caches)


def test_a_cluster_with_tls_and_passwords_is_looked_at(secure: Ignite) -> None:
    found = look(wanted(secure, **good(secure)), LOCAL)
    assert "SQL_PUBLIC_EMPTY" in [one["name"] for one in found["caches"]]
    sealed = {"certificate": secure.keys / "client-sealed.pem", "certificate_password": "password"}
    assert look(wanted(secure, **(good(secure) | sealed)), LOCAL)["count"] == found["count"]


def test_each_thing_that_is_wrong_has_its_code(secure: Ignite) -> None:
    ok = good(secure)
    assert refused(wanted(secure, **(ok | {"password": "wrong"}))) == ("password", "ignite_sign_in")
    assert refused(wanted(secure, certificate=ok["certificate"])) == ("password", "ignite_sign_in")
    expired = {"certificate": secure.keys / "expired.pem"}
    assert refused(wanted(secure, **(ok | expired))) == ("certificate", "ignite_certificate")
    sealed = {"certificate": secure.keys / "client-sealed.pem", "certificate_password": "wrong"}
    assert refused(wanted(secure, **(ok | sealed))) == ("certificate", "ignite_certificate")
    assert refused(wanted(secure, **(ok | {"certificate": "no PEM"}))) == ("certificate", "ignite_certificate")
    assert refused(wanted(secure)) == ("certificate", "ignite_certificate")


def test_a_host_that_does_not_answer_is_told_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert refused(Wanted([("127.0.0.1", port)], {})) == ("hosts", "ignite_unavailable")
    assert refused(Wanted([("127.0.0.1", port)], {})) == ("hosts", "ignite_unavailable")


@pytest.fixture(scope="module")
def portal() -> Iterator[Scene]:
    told = {"YARDMASTER_IGNITE_HOSTS": "127.0.0.1", "YARDMASTER_IGNITE_PORTS": "1-65535"}
    with scene(settings=told) as one:
        yield one


def command(portal: Scene, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = portal.command(*arguments)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@pytest.mark.tensorflow
def test_a_job_reads_a_cache_through_a_connection(portal: Scene, secure: Ignite) -> None:
    names = {"CERT": (secure.keys / "client.pem").read_text(), "IG_USER": "ignite", "IG_PASSWORD": "ignite"}
    own = next(one.id for one in portal.client.namespaces() if one.personal)
    for name, value in names.items():
        portal.client.secret_set(own, name, {"value": value})
    hosts = f"127.0.0.1:{secure.ports[0]}"
    shown = command(
        portal, "connections", "set", "cats", "--hosts", hosts, "--tls", "--certificate", "CERT", "--username",
        "IG_USER", "--password", "IG_PASSWORD",
    )  # fmt: skip
    assert "one-pictures" in shown.stdout
    assert "SQL_PUBLIC_KITTENS" in command(portal, "connections", "show", "cats").stdout
    roles = {"worker": {"cpu": 1, "memory": "1536Mi"}}
    job = portal.launch(SCRIPT, roles=roles, connection={"name": "cats", "cache": "one-pictures"})
    ended = portal.ended(job, 240)
    lines = portal.lines(job)
    assert ended.phase == "SUCCEEDED", lines[-20:]
    assert any(line.startswith("rows 20 one-pictures") for line in lines), lines[-20:]


@pytest.mark.tensorflow
def test_a_job_with_an_unknown_cache_or_connection_is_told_so(portal: Scene, plain: Ignite) -> None:
    own = next(one.id for one in portal.client.namespaces() if one.personal)
    portal.client.connection_set(own, "plain", hosts=f"127.0.0.1:{plain.ports[0]}")
    refused_launch = portal.client.jobs.check(
        portal.spec(portal.put_code({"main.py": "1"}), connection={"name": "dogs"})
    )
    assert "unknown_connection" in str(refused_launch)
    roles = {"worker": {"cpu": 1, "memory": "1536Mi"}}
    script = SCRIPT.replace(', os.environ["IGNITE_DATASET_PASSWORD"]', "")
    job = portal.launch(script, roles=roles, connection={"name": "plain", "cache": "PICTURES"})
    assert portal.ended(job, 240).phase == "FAILED"
    assert any("There is no cache 'PICTURES'" in line for line in portal.lines(job))


@pytest.mark.tensorflow
def test_a_job_whose_ignite_is_away_fails_with_its_address_and_what_to_do(portal: Scene) -> None:
    own = next(one.id for one in portal.client.namespaces() if one.personal)
    gone = free_port()
    portal.client.connection_set(own, "gone", hosts=f"127.0.0.1:{gone}")
    roles = {"worker": {"cpu": 1, "memory": "1536Mi"}}
    script = "from yardmaster_runner import data\ndata.ignite('X')\n"
    ended = portal.ended(portal.launch(script, roles=roles, connection={"name": "gone"}, retries=1), 240)
    assert (ended.phase, ended.reason) == ("FAILED", "IgniteUnavailable")
    assert f"did not answer (No Ignite server can be reached: Ignite at 127.0.0.1:{gone}: " in ended.message
    assert ended.remedy.startswith("Check that the Ignite cluster runs")


def test_rows_are_copied_into_a_dataset_by_a_worker_of_the_portal(portal: Scene, plain: Ignite) -> None:
    own = next(one.id for one in portal.client.namespaces() if one.personal)
    portal.client.connection_set(own, "plain", hosts=f"127.0.0.1:{plain.ports[0]}")
    copy = ("connections", "copy", "plain", "--dataset", "pictures")
    assert "Copied 100 rows" in command(portal, *copy, "--cache", "one-pictures").stderr
    assert "Copied 3 rows" in command(portal, *copy, "--query", "SELECT ID, NAME FROM CATS").stderr
    shown = command(portal, "datasets", "ls", "pictures@2").stdout
    assert "dataset.json" in shown
    assert "train" in shown
    refused_copy = portal.command(*copy, "--cache", "nowhere")
    assert (refused_copy.returncode, "There is no cache 'nowhere'" in refused_copy.stderr) == (1, True)
