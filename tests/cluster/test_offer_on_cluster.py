"""A machine with a kubeconfig, on a real cluster: an address that pods reach is found by trying, what cannot be reached
is said in words, and neither a try nor a demonstration leaves anything there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from portal.cluster.trying import reach
from tests.cluster.reach import Cluster, wait_for
from tests.real import reviews
from tests.real.portal import ROOT, free_port
from yardmaster.engines.base import Probe
from yardmaster.engines.kubernetes import KubernetesEngine

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.usefixtures("own_address"),
]


@pytest.fixture
def prefix(cluster: Cluster) -> Iterator[str]:
    """Of the namespaces of one test, which are removed whatever the test finds."""
    prefix = f"yt-{os.urandom(3).hex()}-"
    yield prefix
    cluster.remove_namespaces(prefix)


def of_the_whole_cluster(cluster: Cluster) -> list[str]:
    kinds = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
    return sorted(one for one in cluster.kubectl("get", kinds, "-o", "name").split() if "yardmaster" in one)


def tasks(cluster: Cluster, prefix: str) -> dict:
    return {"image": cluster.probe_image, "namespace_prefix": prefix, "installation": "test"}


class TestTrying:
    def test_an_address_that_pods_reach_is_told_from_one_that_they_do_not(self, cluster: Cluster, prefix: str):
        port, hosts = free_port(), ["127.0.0.1", cluster.own_address]
        asked = {
            "kubeconfig": cluster.kubeconfig, "context": "", "hosts": hosts, "port": port, "patience": 60,
            "tasks": tasks(cluster, prefix),
        }  # fmt: skip
        outcomes = reach(asked)["outcomes"]
        assert outcomes[cluster.own_address] == ""
        assert "did not reach" in outcomes["127.0.0.1"]
        wait_for("the end of the try's namespace", lambda: not cluster.namespaces(prefix), 90)

    def test_a_portal_that_is_not_there_is_said_with_its_address_and_the_remedy(self, cluster: Cluster, prefix: str):
        engine = KubernetesEngine(kubeconfig=cluster.kubeconfig, tasks=tasks(cluster, prefix))
        url = f"http://{cluster.own_address}:{free_port()}"
        found = engine.probe(Probe.REACH, url)
        assert found.is_well is False
        assert url in found.message
        assert "YARDMASTER_HOST" in found.remedy
        wait_for("the end of the try's namespace", lambda: not cluster.namespaces(prefix), 90)

    def test_an_image_that_no_node_has_says_nothing_against_the_portal(self, cluster: Cluster, prefix: str):
        told = {**tasks(cluster, prefix), "image": "localhost/no/such:image", "image_pull_policy": "Never"}
        engine = KubernetesEngine(kubeconfig=cluster.kubeconfig, tasks=told)
        found = engine.probe(Probe.REACH, f"http://{cluster.own_address}:1")
        assert found.is_well is None
        assert "could not begin" in found.message
        assert "no/such:image" in found.message
        wait_for("the end of the try's namespace", lambda: not cluster.namespaces(prefix), 90)


@pytest.fixture
def told(cluster: Cluster, prefix: str, tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with a kubeconfig, and a portal's home of its own."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
    return base | {
        "KUBECONFIG": cluster.kubeconfig,
        "YARDMASTER_HOME": str(tmp_path / "home"),
        "YARDMASTER_KUBERNETES_TASKS": json.dumps({"namespace_prefix": prefix}),
        "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
        "PYTHONUNBUFFERED": "1",
    }


def started(told: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *words], env=told, cwd=ROOT, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # ignored where the tests run in a background
    )  # fmt: skip


def until(child: subprocess.Popen[str], word: str) -> str:
    """What it printed until a line with this word."""
    assert child.stdout is not None
    said = ""
    for line in child.stdout:
        said += line
        if word in line:
            return said
    raise AssertionError(f"{word!r} never came:\n{said}")


def ended(child: subprocess.Popen[str], how: signal.Signals = signal.SIGINT) -> str:
    child.send_signal(how)
    return child.communicate(timeout=200)[0]


class TestMakeUp:
    @pytest.fixture(autouse=True)
    def second_port(self, told: dict[str, str]):
        told["YARDMASTER_WORKBENCH_PORT"] = str(free_port())

    def test_the_engine_is_there_without_a_page_of_settings_and_is_quick_the_next_time(
        self, cluster: Cluster, prefix: str, told: dict[str, str]
    ):
        port = str(free_port())
        told["YARDMASTER_KUBERNETES_IMAGE"] = cluster.probe_image
        child = started(told, "portal.up", "--port", port, "--engine", "kubernetes")
        try:
            said = until(child, "is ready at")
            assert f"Pods reach this machine at {cluster.own_address}" in said
            with urllib.request.urlopen(f"http://{cluster.own_address}:{port}/healthz", timeout=10) as answer:
                assert answer.status == 200
        finally:
            ended(child)
        begun = time.monotonic()
        child = started(told, "portal.up", "--port", port)
        try:
            assert "as was chosen before" in until(child, "is ready at")
            assert time.monotonic() - begun < 60
        finally:
            ended(child)

    def test_without_consent_the_cluster_is_mentioned_and_nothing_is_asked_of_it(
        self, cluster: Cluster, prefix: str, told: dict[str, str]
    ):
        child = started(told, "portal.up", "--port", str(free_port()))
        try:
            said = until(child, "is ready at http://127.0.0.1")
            assert "`make up ENGINE=kubernetes` lets jobs run there" in said
        finally:
            ended(child)
        assert cluster.namespaces(prefix) == []


@pytest.mark.alone  # looks at what is there of the whole cluster, and trains
@pytest.mark.timeout(800)
@pytest.mark.parametrize("end", [pytest.param("Ctrl-C", marks=pytest.mark.long), "to its end"])
def test_a_demonstration_leaves_nothing_on_the_cluster(cluster: Cluster, prefix: str, told: dict[str, str], end: str):
    before = of_the_whole_cluster(cluster)
    told |= {
        "YARDMASTER_KUBECONFIG": cluster.kubeconfig,
        "YARDMASTER_KUBERNETES_IMAGE": cluster.task_image,
        "YARDMASTER_HOST": cluster.own_address,
        "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,localhost,{cluster.own_address}",
    }
    words = ["--port", str(free_port()), "--engine", "kubernetes", "--ps", "1", "--workers", "1", "--exit"]
    if end == "to its end":
        reviews.texts()  # skips where the package index cannot be reached, and fills the cache
        # The pods must reach that, and nothing else of this machine. With both examples, of the texts only some.
        words += ["--store", "minio", "--most", "150"]
    child = started(told, "portal.demo", *words)
    said = until(child, "Launched")
    wait_for("its namespace", lambda: cluster.namespaces(prefix), 60)
    if end == "Ctrl-C":
        said += ended(child)
        assert child.returncode == 130, said
    else:
        said += child.communicate(timeout=600)[0]
        assert child.returncode == 0, said
    assert "Nothing is left of it there." in said
    assert cluster.namespaces(prefix) == []
    assert of_the_whole_cluster(cluster) == before
