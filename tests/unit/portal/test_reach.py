"""Settings with which no task could reach the portal stop its start, and each is named."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from portal.reach import Reach, contradictions, is_loopback, reach_of

LOCAL = Reach(
    task_url="http://127.0.0.1:8080",
    pod_url=None,
    pod_url_is_own=False,
    allowed_hosts=["127.0.0.1", "localhost", "[::1]"],
    listens_on="127.0.0.1",
    is_behind_proxy=False,
)
HERE = "http://10.0.0.10:8080"
CLUSTER = replace(LOCAL, task_url=HERE, pod_url=HERE, allowed_hosts=["127.0.0.1", "10.0.0.10"], listens_on="0.0.0.0")


def found(reach: Reach) -> list[str]:
    return [problem.field for problem in contradictions(reach)]


@pytest.mark.parametrize(
    "reach",
    [
        LOCAL,
        CLUSTER,
        replace(CLUSTER, listens_on="10.0.0.10"),
        replace(CLUSTER, listens_on=""),
        replace(CLUSTER, listens_on="127.0.0.1", is_behind_proxy=True),
        replace(CLUSTER, allowed_hosts=["*"]),
        replace(CLUSTER, allowed_hosts=[], is_behind_proxy=True),
        replace(CLUSTER, task_url="http://127.0.0.1:8080", pod_url_is_own=True),
        replace(
            CLUSTER, task_url="http://[fd00::1]:8080", pod_url="http://[fd00::1]:8080", allowed_hosts=["[fd00::1]"]
        ),
        replace(
            CLUSTER, task_url="https://portal.example", pod_url="https://portal.example", allowed_hosts=[".example"]
        ),
    ],
)
def test_settings_that_agree_are_let_be(reach: Reach) -> None:
    assert found(reach) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.0.0.2", "0.0.0.0"])
def test_pods_are_not_told_an_address_that_is_their_own(host: str) -> None:
    url = f"http://{host}:8080"
    (problem, *_) = contradictions(replace(CLUSTER, task_url=url, pod_url=url))
    assert problem.field == "YARDMASTER_TASK_URL"
    assert url in problem.message
    assert "YARDMASTER_TASK_URL" in problem.remedy
    (problem, *_) = contradictions(replace(CLUSTER, pod_url=url, pod_url_is_own=True))
    assert problem.field == 'YARDMASTER_KUBERNETES_TASKS, "portal_url"'


def test_a_portal_that_listens_on_this_machine_alone_is_not_for_pods() -> None:
    (problem,) = contradictions(replace(CLUSTER, listens_on="127.0.0.1"))
    assert problem.field == "YARDMASTER_HOST"
    assert HERE in problem.message
    assert "0.0.0.0" in problem.remedy


def test_the_host_of_an_address_for_tasks_is_answered() -> None:
    (problem,) = contradictions(replace(LOCAL, task_url="http://portal.example:8080"))
    assert problem.field == "YARDMASTER_ALLOWED_HOSTS"
    assert "YARDMASTER_ALLOWED_HOSTS=127.0.0.1,localhost,[::1],portal.example" in problem.remedy


def test_a_name_is_loopback_where_it_says_so() -> None:
    assert [name for name in ("localhost", "LOCALHOST.", "::1", "[::1]", "127.9.9.9", "10.0.0.1", "a.example", "")
            if is_loopback(name)] == ["localhost", "LOCALHOST.", "::1", "[::1]", "127.9.9.9"]  # fmt: skip


@pytest.mark.parametrize(("tasks", "pod_url"), [({}, HERE), ({"portal_url": "http://10.9.9.9"}, "http://10.9.9.9")])
def test_it_is_read_from_the_engines_own_options_first(monkeypatch, tasks: dict, pod_url: str) -> None:
    monkeypatch.setenv("YARDMASTER_HOST", "0.0.0.0")
    engine = {"class": "yardmaster.engines.kubernetes.KubernetesEngine", "options": {"tasks": tasks}}
    settings = SimpleNamespace(
        YARDMASTER_ENGINES={"local": {"class": "x.LocalEngine", "options": {}}, "cluster": engine},
        TASK_URL=HERE,
        ALLOWED_HOSTS=["*"],
        SECURE_PROXY_SSL_HEADER=None,
    )
    assert (reach_of(settings).pod_url, reach_of(settings).listens_on) == (pod_url, "0.0.0.0")
