"""The pod that tries whether processes are bounded: a restricted one, and what is made of what it says or does not."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.fakes.kubernetes_store import violations
from yardmaster.engines.base import Examined
from yardmaster.engines.kubernetes import process_check
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.engines.kubernetes.process_check import BOUNDED, MOST, PROGRAM, UNBOUNDED, examine, job, outcome_of
from yardmaster.errors import Unavailable

OPTIONS = TaskOptions(image="tasks:1", node_selector={"pool": "tasks"}, image_pull_secrets=("registry",))


def ended(code, message="", **status):
    state = {"terminated": {"exitCode": code, "message": message}}
    return {"metadata": {"name": "p"}, "status": {"containerStatuses": [{"name": "task", "state": state}], **status}}


class Answers:
    """An API server that has these pods, in turn."""

    def __init__(self, *pods, trouble=None):
        self.pods, self.trouble, self.made, self.deleted = list(pods), trouble, [], []

    def apply(self, manifest):
        if self.trouble:
            raise self.trouble
        self.made.append(manifest["metadata"]["name"])

    def find(self, kind, namespace, labels):
        return [self.pods.pop(0) if len(self.pods) > 1 else self.pods[0]] if self.pods else []

    def delete(self, kind, namespace, name):
        self.deleted.append(name)


def test_its_pod_is_as_restricted_as_a_task_goes_where_tasks_go_and_ends_by_itself():
    made = job("check", "place", OPTIONS)
    pod = made["spec"]["template"]["spec"]
    assert violations(pod) == []
    assert (pod["nodeSelector"], pod["imagePullSecrets"]) == ({"pool": "tasks"}, [{"name": "registry"}])
    assert made["spec"]["activeDeadlineSeconds"] > 0 < made["spec"]["ttlSecondsAfterFinished"]
    assert pod["containers"][0]["resources"]["limits"]["ephemeral-storage"]
    assert "app.kubernetes.io/managed-by" not in str(made)


@pytest.mark.parametrize(("bound", "code"), [(30, BOUNDED), (5000, UNBOUNDED)])
def test_the_program_says_how_many_threads_it_could_begin(tmp_path, bound, code):
    told = tmp_path / "told"
    begins = "import threading, _thread\n_begun, _real = [], _thread.start_new_thread\n"
    refuses = f"""
def _start(self):
    if len(_begun) >= {bound}:
        raise RuntimeError("can't start new thread")
    _begun.append(self)
threading.Thread.start = _start
"""
    program = begins + refuses + PROGRAM.replace("/dev/termination-log", str(told))
    ast.parse(PROGRAM)
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == code
    assert told.read_text() == str(min(bound, MOST))


def test_what_it_told_is_said():
    bounded, unbounded = outcome_of([ended(BOUNDED, "2041")]), outcome_of([ended(UNBOUNDED, str(MOST))])
    assert bounded == Examined(True, "A pod may have no more than about 2041 threads and processes.")
    assert unbounded is not None
    assert not unbounded.is_well
    assert "podPidsLimit" in unbounded.remedy


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (ended(137), "ended with 137"),
        (ended(1, "Traceback"), "Traceback"),
        ({"metadata": {}, "status": {"phase": "Failed", "message": "Pod was active too long"}}, "too long"),
        (
            {"metadata": {}, "status": {"phase": "Pending", "containerStatuses": [
                {"name": "task", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]}},
            "no such image",
        ),
    ],
)  # fmt: skip
def test_what_tells_nothing_is_never_taken_for_a_bound(pod, said):
    found = outcome_of([pod])
    assert found is not None
    assert not found.is_well
    assert "not known" in found.message
    assert said in found.message


def test_it_is_waited_for_and_removed(monkeypatch):
    monkeypatch.setattr(process_check.time, "sleep", lambda seconds: None)
    answers = Answers({"metadata": {}, "status": {"phase": "Pending"}}, ended(BOUNDED, "100"))
    assert examine(answers, "place", OPTIONS).is_well
    assert answers.made == answers.deleted != []


def test_what_never_comes_and_a_cluster_that_refuses_are_findings():
    late = Answers()
    assert "has not ended within 0 s" in examine(late, "place", OPTIONS, patience=0).message
    assert late.deleted == late.made
    refused = examine(Answers(trouble=Unavailable("No answer.", remedy="Wait.")), "place", OPTIONS)
    assert not refused.is_well
    assert "No answer. Wait." in refused.message
