"""Terminals in tasks that run in pods: one command, a terminal, and a task whose script failed and is held open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.jobs import TRAINS, WAITS, cleaned_up, ended, launch, pod_of, text_of
from tests.cluster.reach import Cluster, wait_for
from yardmaster_client import Job, Yardmaster
from yardmaster_client.shell import STDERR, STDOUT, Shell

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

TASK = "worker-0"
SAYS_WHAT_IT_IS = """
import json, os
names = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
with open("/proc/self/status") as status:
    parts = [line.partition(":") for line in status]
found = {name: value.split() for name, _, value in parts if name in names}
found["spaces"] = [os.readlink("/proc/self/ns/" + one) for one in ("mnt", "net", "pid", "user", "uts")]
found["folder"], found["environment"] = os.getcwd(), dict(os.environ)
found["account"] = os.path.exists("/var/run/secrets/kubernetes.io")
print("is", json.dumps(found), flush=True)
"""
ANSWERS = """
import sys
print("read", sys.stdin.read(), file=sys.stderr)
sys.exit(7)
"""
FAILS = """
with open("note", "w") as file:
    file.write("of the script")
raise SystemExit(3)
"""


@pytest.fixture(scope="module")
def running(ada: Yardmaster) -> Job:
    """Its script has said what it is, and waits. The last test of it stops it."""
    job = launch(ada, SAYS_WHAT_IT_IS + WAITS, environment={"COLOUR": "green"})
    wait_for("begun", lambda: "begun" in text_of(ada, job) and state_of(ada, job) == "running", TRAINS)
    return job


def ran(client: Yardmaster, job: Job, *command: str, given: bytes = b"") -> tuple[int | None, str, str]:
    """The exit code of a command in the task, its output and its errors."""
    with client.jobs.shell(job.id, TASK, command) as shell:
        shell.wait_until_open()
        shell.send(given)
        shell.end_input()
        printed = list(shell.printed())
    output, errors = (b"".join(piece for kind, piece in printed if kind == one) for one in (STDOUT, STDERR))
    return shell.exit_code, output.decode(), errors.decode()


def said_in(text: str) -> dict[str, Any]:
    """What one that says what it is has said there."""
    (line,) = (one for one in text.splitlines() if one.startswith("is "))
    return dict(json.loads(line.removeprefix("is ")))


def until(shell: Shell, output: Iterator[bytes], text: str) -> str:
    """What is printed, up to this."""
    found = bytearray()
    for printed in output:
        found += printed
        if text.encode() in found:
            return found.decode(errors="replace")
    raise AssertionError(f"{text} was not printed before the end: {shell.why}; {bytes(found)!r}")


def state_of(client: Yardmaster, job: Job) -> str:
    return str(client.jobs.tasks(job.id)[0]["state"])


def test_a_command_in_a_pod_has_the_rights_the_folder_and_the_environment_of_the_script(
    ada: Yardmaster, cluster: Cluster, running: Job
):
    code, output, errors = ran(ada, running, "python3", "-c", SAYS_WHAT_IT_IS + ANSWERS, given="ü\n".encode() * 3)
    assert (code, errors) == (7, "read ü\nü\nü\n\n")
    command = said_in(output)
    assert command == said_in(text_of(ada, running))
    place, name = pod_of(cluster, running, "worker", 0)
    user = str(cluster.get("pod", name, place)["spec"]["securityContext"]["runAsUser"])
    assert command["Uid"] == command["Gid"] == [user] * 4
    assert (int(command["CapEff"][0], 16), command["NoNewPrivs"], command["Seccomp"]) == (0, ["1"], ["2"])
    assert not command["account"], "a token of a service account"
    assert command["environment"]["COLOUR"] == "green"
    assert "YARDMASTER_TOKEN_FILE" not in command["environment"]
    assert "ymt." not in output


def test_a_terminal_in_a_pod_has_a_size_and_ends_with_its_task(ada: Yardmaster, running: Job):
    with ada.jobs.shell(running.id, TASK) as shell:
        shell.wait_until_open()
        shell.resize(40, 120)
        shell.send(b"tty; stty size; echo do''ne\n")
        typed = shell.output()
        printed = until(shell, typed, "done\r\n")
        assert "/dev/pts/" in printed
        assert "40 120" in printed
        ada.jobs.stop(running.id)
        list(typed)
    assert "has ended" in shell.why
    ended(ada, running, "STOPPED")


def test_a_task_whose_script_failed_is_held_in_its_pod_until_it_is_released(ada: Yardmaster, cluster: Cluster):
    job = launch(ada, FAILS, hold_failed=600, retries=0)
    wait_for("held", lambda: state_of(ada, job) == "held", TRAINS)
    pod_of(cluster, job, "worker", 0)
    assert ada.jobs.get(job.id).phase == "RUNNING"
    code, output, _ = ran(ada, job, "sh", "-c", 'cat note; echo found > "$LOG_DIR/found.txt"')
    assert (code, output) == (0, "of the script")
    ada.jobs.release(job.id, TASK)
    job = ended(ada, job, "FAILED")
    assert job.reason == "ScriptFailed"
    assert "exit code 3" in job.message
    cleaned_up(ada, job)
    kept = [one.path for one in ada.jobs.outputs(job.id)]
    assert kept == ["note", f"{TASK}/found.txt"], "what was written meanwhile is lost"
    pods = ("get", "pods", "--all-namespaces", "--show-labels")
    wait_for("the end of its pod", lambda: job.id not in cluster.kubectl(*pods))
