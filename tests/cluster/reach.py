"""The Kubernetes that tests run on: the one KUBECONFIG names, else the one that `make cluster` brought up.

Not here: what is tested. Everything goes through kubectl, so that the portal's own client is not judged by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEVCLUSTER = Path(__file__).resolve().parents[2] / "deploy" / "devcluster" / "devcluster"
NEEDED = "no Kubernetes: set KUBECONFIG, or run make cluster"


class Refused(Exception):
    """The API server said no; the text is its own."""


@dataclass(frozen=True)
class Cluster:
    """An API server that answers, and the images that its node has."""

    kubeconfig: str
    probe_image: str
    task_image: str
    workbench_image: str
    own_address: str
    """Where pods reach this machine, or empty where that is not known."""
    is_developed: bool = False
    """Whether it is the one of `make cluster`, whose network may be disturbed."""

    def kubectl(self, *words: str, given: object = None) -> str:
        """What kubectl printed; `given` becomes its standard input, as JSON. Raises `Refused`."""
        program = shutil.which("kubectl")
        command = [program] if program else [str(DEVCLUSTER), "kubectl"]
        done = subprocess.run(
            [*command, *words],
            env={**os.environ, "KUBECONFIG": self.kubeconfig},
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise Refused(done.stderr.strip())
        return done.stdout

    def apply(self, manifest: Mapping[str, Any], *words: str) -> dict[str, Any]:
        """The object as the server keeps it (or would, with --dry-run=server)."""
        return json.loads(self.kubectl("apply", "--server-side", "-o", "json", "-f", "-", *words, given=manifest))

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", kind, name, "--namespace", namespace, "-o", "json"))

    def log(self, pod: str, namespace: str) -> str:
        return self.kubectl("logs", pod, "--namespace", namespace)

    def names(self, kind: str, *words: str) -> list[str]:
        """Of all objects of this kind, or of those that these words of kubectl choose."""
        return [one.partition("/")[2] for one in self.kubectl("get", kind, "-o", "name", *words).split()]

    def namespaces(self, prefix: str) -> list[str]:
        """Of which the names begin so."""
        return [name for name in self.names("namespaces") if name.startswith(prefix)]

    def remove_namespaces(self, prefix: str) -> None:
        """The same as `remove_namespace` of all of which the names begin so."""
        for name in self.namespaces(prefix):
            self.remove_namespace(name)

    def remove_namespace(self, name: str) -> None:
        """End what runs in it, then begin its own end. Absent: nothing.

        Pods come first, as they may have an hour to upload: a namespace that ends with such pods is looked at again
        after half of that, also where they are gone by then; and deleted with their Jobs they would have the hour. A
        Job and its last failed pod would wait for each other in it."""
        inside = ("--all", "--namespace", name)
        self.kubectl("delete", "pods", *inside, "--grace-period=1", "--wait=false")
        self.kubectl("delete", "jobs,statefulsets", *inside, "--wait=false")
        try:
            self.kubectl("delete", "pods", *inside, "--grace-period=1", "--timeout=20s")
        except Refused:  # they are on a node that does not answer
            self.kubectl("delete", "pods", *inside, "--grace-period=0", "--force", "--wait=false")
        self.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")

    @contextlib.contextmanager
    def cut_off(self) -> Iterator[None]:
        """Pods do not reach this machine meanwhile. Of the development cluster only."""
        self.devcluster("cut")
        try:
            yield
        finally:
            self.devcluster("mend")

    def answers(self) -> bool:
        try:
            return self.kubectl("get", "--raw", "/readyz").strip() == "ok"
        except (Refused, subprocess.TimeoutExpired):
            return False

    def devcluster(self, *words: str, seconds: float = 60) -> None:
        """A command of the development cluster, which does what it says."""
        done = subprocess.run([str(DEVCLUSTER), *words], capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0, done.stderr


def find_cluster() -> Cluster | None:
    """The cluster to test on, or None where there is none that answers."""
    given = os.environ.get("KUBECONFIG", "")
    developed = _ask("kubeconfig")
    kubeconfig = given or developed
    if not kubeconfig or not Path(kubeconfig).exists():
        return None
    cluster = Cluster(
        kubeconfig=kubeconfig,
        probe_image=os.environ.get("YARDMASTER_TEST_PROBE_IMAGE", "localhost/yardmaster/probe:dev"),
        task_image=os.environ.get("YARDMASTER_TEST_TASK_IMAGE", "localhost/yardmaster/task:dev"),
        workbench_image=os.environ.get("YARDMASTER_TEST_WORKBENCH_IMAGE", "localhost/yardmaster/workbench:dev"),
        own_address=os.environ.get("YARDMASTER_TEST_OWN_ADDRESS", _ask("address") if kubeconfig == developed else ""),
        is_developed=kubeconfig == developed,
    )
    return cluster if cluster.answers() else None


def lacks_cluster() -> str:
    """Why the cluster tests cannot run, or empty."""
    return "" if find_cluster() else NEEDED


def wait_for(what: str, condition: Callable[[], Any], seconds: float = 60) -> Any:
    """The first true value of the condition."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds:g} s")


def _ask(word: str) -> str:
    """What the devcluster script says, or nothing where it cannot run."""
    bash = shutil.which("bash")
    if bash is None:
        return ""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    done = subprocess.run([bash, str(DEVCLUSTER), word], env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip()
