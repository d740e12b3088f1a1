"""What brings the objects of an API server to life: the controllers of Jobs and StatefulSets, a scheduler, a kubelet,
in a thread or step by step. Pods run when a test lets them, end as it says, and end by themselves when they are
deleted.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime
from typing import Any

from tests.fakes.kubernetes_store import Object, ObjectKey, Refusal, Store, copied, moment
from yardmaster.engines.kubernetes.render import names

NODE = "node-1"
_TICK = 0.01
POD_ADDRESS = "10.1.2.3"


class Cluster:
    """One ready node, without limits. `let_begin` and `end` speak of runs by their name. With `lives` it goes on by
    itself until `close`, else by `step` alone."""

    def __init__(self, store: Store, *, lives: bool = True) -> None:
        self._store = store
        self._begun: set[str] = set()
        self._lives: dict[tuple[str, int], tuple[int, int, str]] = {}
        """Of a Job's index: its failures, and those that are nobody's fault, before its newest pod; that pod's uid."""
        self.stubborn: set[tuple[str, str, int]] = set()
        self._closed = threading.Event()
        store.write(("nodes", "", NODE), node(NODE))
        self._thread = threading.Thread(target=self._live)
        if lives:
            self._thread.start()

    def let_begin(self, run: str) -> None:
        self._begun.add(run)

    def end(self, run: str, role: str, index: int, exit_code: int, **terminated: Any) -> None:
        """The container of this task's newest pod has ended; one of a set is started again by the kubelet."""
        with self._store.lock:
            pod = [one for one in self._pods(run) if _task_of(one) == (role, index)][-1]
            ended = {"exitCode": exit_code, "startedAt": moment(), "finishedAt": moment(), **terminated}
            status = pod["status"]["containerStatuses"][0]
            if pod["spec"]["restartPolicy"] == "Always":
                status.update(lastState={"terminated": ended}, restartCount=status["restartCount"] + 1)
            else:
                status["state"] = {"terminated": ended}
                pod["status"]["phase"] = "Failed" if exit_code else "Succeeded"
            self._store.write(_place(pod), pod)

    def evict(self, run: str, role: str, index: int) -> None:
        """As a node that is emptied does: the pod fails, and its failure is nobody's fault."""
        with self._store.lock:
            pod = [one for one in self._pods(run) if _task_of(one) == (role, index)][-1]
            target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
            pod["status"].update(phase="Failed", conditions=[target], message="The node is being drained.")
            self._store.write(_place(pod), pod)

    def overfill(self, run: str, role: str, index: int) -> None:
        """The task has written more than it may: its kubelet evicts it, and says so in its pod and in an event. What is
        made in its place takes its time to begin."""
        said = 'Usage of EmptyDir volume "work" exceeds the limit "20Gi". '
        with self._store.lock:
            self._begun.discard(run)
            pod = [one for one in self._pods(run) if _task_of(one) == (role, index)][-1]
            pod["status"].update(phase="Failed", reason="Evicted", message=said)
            pod["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 137, "finishedAt": moment()}}
            self._store.write(_place(pod), pod)
            metadata = pod["metadata"]
            place = ("events", metadata["namespace"], f"{metadata['name']}.{metadata['uid']}")
            about = {"kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
            event = {"kind": "Event", "metadata": {"name": place[2], "namespace": place[1]}, "involvedObject": about}
            self._store.write(place, {**event, "type": "Warning", "reason": "Evicted", "message": said})

    def close(self) -> None:
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()

    # --- its life ----------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        while not self._closed.wait(_TICK):
            self.step()

    def step(self) -> None:
        """Every controller and the kubelet look once."""
        with self._store.lock:
            self._store.collect_garbage()
            for job in self._store.find("jobs"):
                if "deletionTimestamp" not in job["metadata"]:
                    self._care_for_job(job)
            for one in self._store.find("statefulsets"):
                if "deletionTimestamp" not in one["metadata"]:
                    self._care_for_set(one)
            for pod in self._store.find("pods"):
                self._care_for_pod(pod)

    def _care_for_job(self, job: Object) -> None:
        """One pod per index until each has succeeded or spent its restarts."""
        spec, completed, failed = job["spec"], [], []
        uid = job["metadata"]["uid"]
        mine = [pod for pod in self._store.peek("pods") if pod["metadata"]["ownerReferences"][0]["uid"] == uid]
        for index in range(spec["completions"]):
            of_index = [pod for pod in mine if _task_of(pod)[1] == index]
            newest = of_index[-1] if of_index else None
            if newest is not None and newest["status"]["phase"] == "Succeeded":
                completed.append(index)
            elif newest is None and (uid, index) in self._lives:
                failed += self._after_removal(job, index)
            elif newest is None:
                self._make(job, index, 0, 0)
            elif newest["status"]["phase"] == "Failed":
                failed += self._after_failure(job, index, newest)
        status = {"completedIndexes": ",".join(map(str, completed)), "failedIndexes": ",".join(map(str, failed))}
        if count := sum(failures for (of, _), (failures, _, _) in self._lives.items() if of == uid) + len(failed):
            status["failed"] = count
        if len(completed) + len(failed) == spec["completions"]:
            status["conditions"] = [{"type": "Failed" if failed else "Complete", "status": "True"}]
        if job.get("status") != status:
            self._store.write(_place(job), {**job, "status": status})

    def _after_failure(self, job: Object, index: int, pod: Object) -> list[int]:
        """Make it anew, or report the index as failed."""
        annotations = pod["metadata"]["annotations"]
        failures, ignored = (int(annotations[one]) for one in (names.JOB_FAILURES, names.JOB_IGNORED_FAILURES))
        if any(one["type"] == "DisruptionTarget" for one in pod["status"].get("conditions", ())):
            self._make(job, index, failures, ignored + 1)
            return []
        code = pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
        hopeless = [rule for rule in job["spec"]["podFailurePolicy"]["rules"] if rule["action"] == "FailIndex"]
        if failures >= job["spec"]["backoffLimitPerIndex"] or code in hopeless[0]["onExitCodes"]["values"]:
            return [index]
        self._make(job, index, failures + 1, ignored)
        return []

    def _after_removal(self, job: Object, index: int) -> list[int]:
        """A pod that was deleted counts as a failed one, and shows no more how it ended."""
        failures, ignored, pod = self._lives[job["metadata"]["uid"], index]
        if pod in self._store.evicted:
            self._make(job, index, failures, ignored + 1)
            return []
        if failures >= job["spec"]["backoffLimitPerIndex"]:
            return [index]
        self._make(job, index, failures + 1, ignored)
        return []

    def _care_for_set(self, found: Object) -> None:
        for index in range(found["spec"]["replicas"]):
            name = f"{found['metadata']['name']}-{index}"
            pod = self._store.objects.get(("pods", found["metadata"]["namespace"], name))
            if pod is None:
                self._add(found, name, {names.SET_INDEX: str(index)}, {})
            elif pod["status"]["phase"] == "Failed":
                self._store.remove(_place(pod))

    def _care_for_pod(self, pod: Object) -> None:
        deadline = pod["metadata"].get("deletionTimestamp")
        if deadline is not None:
            is_stubborn = (pod["metadata"]["labels"][names.RUN], *_task_of(pod)) in self.stubborn
            if not is_stubborn or datetime.fromisoformat(deadline) <= datetime.now(UTC):
                with contextlib.suppress(Refusal):
                    self._store.delete(_place(pod), 0)
        elif pod["status"]["phase"] == "Pending" and pod["metadata"]["labels"][names.RUN] in self._begun:
            pod["spec"]["nodeName"] = NODE
            status = {"name": names.CONTAINER, "restartCount": 0, "state": {"running": {"startedAt": moment()}}}
            pod["status"] = {
                "phase": "Running", "startTime": moment(), "containerStatuses": [status], "podIP": POD_ADDRESS,
            }  # fmt: skip
            self._store.write(_place(pod), pod)

    def _make(self, job: Object, index: int, failures: int, ignored: int) -> None:
        annotations = {
            names.JOB_INDEX: str(index),
            names.JOB_FAILURES: str(failures),
            names.JOB_IGNORED_FAILURES: str(ignored),
        }
        pod = self._add(job, f"{job['metadata']['name']}-{index}-{failures + ignored}x", {}, annotations)
        self._lives[job["metadata"]["uid"], index] = failures, ignored, pod["metadata"]["uid"]

    def _add(self, maker: Object, name: str, labels: dict[str, str], annotations: dict[str, str]) -> Object:
        template, namespace = copied(maker["spec"]["template"]), maker["metadata"]["namespace"]
        owner = {"kind": maker["kind"], "uid": maker["metadata"]["uid"], "name": maker["metadata"]["name"]}
        owner["blockOwnerDeletion"] = True
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": {**template["metadata"]["labels"], **labels},
            "annotations": annotations,
            "ownerReferences": [owner],
        }
        pod = {"kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}}
        there = self._store.objects.get(("pods", namespace, name))
        return there or self._store.write(("pods", namespace, name), pod)

    def _pods(self, run: str = "") -> list[Object]:
        return self._store.find("pods", labels=f"{names.RUN}={run}" if run else "")


def node(name: str, **allocatable: str) -> Object:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", **allocatable},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _task_of(pod: Object) -> tuple[str, int]:
    metadata = pod["metadata"]
    index = metadata["annotations"].get(names.JOB_INDEX) or metadata["labels"].get(names.SET_INDEX)
    return metadata["labels"][names.ROLE], int(index)


def _place(found: Object) -> ObjectKey:
    plural = {"Job": "jobs", "StatefulSet": "statefulsets", "Pod": "pods"}[found["kind"]]
    return plural, found["metadata"]["namespace"], found["metadata"]["name"]
