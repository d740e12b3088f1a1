"""The engine that runs a job's tasks as pods. The cluster is the truth: any process of the portal may call any verb.

Every run is a few objects that belong to one owner. A submission is complete when its last workload is there: one that
was interrupted counts as absent and is submitted again, which finishes it. What is to end is first written into the
owner, with the facts of its tasks, and then deleted; the owner's end is the end of all.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from yardmaster.engines.base import (
    Address,
    Capacity,
    Finding,
    HomeUse,
    Machine,
    Probe,
    Remains,
    Servers,
    TaskAccess,
    VolumeState,
)
from yardmaster.engines.drivers import DriverAddress
from yardmaster.engines.kubernetes import probes
from yardmaster.engines.kubernetes.capacity.count import Count
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect
from yardmaster.engines.kubernetes.client.errors import Absent, Conflict
from yardmaster.engines.kubernetes.client.objects import is_ending
from yardmaster.engines.kubernetes.namespaces.home_keeper import HomeKeeper
from yardmaster.engines.kubernetes.namespaces.shaper import Shaper
from yardmaster.engines.kubernetes.namespaces.storage_classes import class_check
from yardmaster.engines.kubernetes.namespaces.volume_keeper import VolumeKeeper
from yardmaster.engines.kubernetes.observe.facts import (
    due_in,
    go_with_token,
    goes_by_itself,
    has_left_over,
    observation_of,
)
from yardmaster.engines.kubernetes.observe.reading import Reader
from yardmaster.engines.kubernetes.observe.roles import lives
from yardmaster.engines.kubernetes.observe.watching import Watching
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.manifests import Run, workload_kind
from yardmaster.engines.kubernetes.render.names import cluster_map
from yardmaster.engines.kubernetes.render.options import NO_SPARK, TaskOptions
from yardmaster.engines.kubernetes.render.outside import leads_outside
from yardmaster.engines.kubernetes.render.peers import spark_peers
from yardmaster.engines.kubernetes.render.pods import WORK_DIR
from yardmaster.engines.kubernetes.render.record import (
    GANG_RESTARTS,
    RECORD,
    RunShape,
    release_of,
    released_in,
    released_key,
)
from yardmaster.engines.kubernetes.submission import Submitter
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.strategy import server_roles
from yardmaster.job.volumes import VolumeKind
from yardmaster.lifecycle.phases import Observation
from yardmaster.queueing.ledger import Quota

_TRIES = 20
_TO_SHOW = TaskAccess("<the portal's address>", "<the job's token>")


class KubernetesEngine:
    """`tasks` is the table of `TaskOptions`. `kubeconfig` (a file) and `context` say which cluster; without them the
    one that the portal runs in, or that of the usual kubeconfig. `api` takes the place of both.

    With `watch`, a process that observes begins one watch per kind and asks the server only where that is not enough:
    for processes that live long. `watching` takes the place of the watches that it would make."""

    isolates = True

    def __init__(
        self,
        *,
        tasks: Mapping[str, Any],
        name: str = "kubernetes",
        kubeconfig: str = "",
        context: str = "",
        watch: bool = False,
        api: Api | None = None,
        watching: Watching | None = None,
    ) -> None:
        self.name = name
        self.options = TaskOptions.from_table(tasks)
        self.has_way_out = any(map(leads_outside, self.options.allow_egress))
        self.driver_address = DriverAddress.OWN if spark_peers(self.options) else None
        self._api = api or Api(connect(str(kubeconfig), context))
        self._watches = watch
        self._lock = threading.Lock()
        self._count = Count(self.options)
        self._shaper = Shaper(self._api, self.options)
        self._volumes = VolumeKeeper(self._api, self.options, self._shaper)
        self._homes = HomeKeeper(self._api, self.options, self._shaper)
        self._submitter = Submitter(self._api, self.options, self._shaper)
        self._begin(watching)

    def _begin(self, watching: Watching | None = None) -> None:
        self._process = os.getpid()
        self._watching = watching or Watching(self._api, self.options.namespace_prefix)
        self._own_reader = Reader(self._api, self.options, self._watching if self._watches else None)

    @property
    def _reader(self) -> Reader:
        """This process's own. After a fork it starts empty: a parent's threads, and what they knew, stayed behind."""
        if self._process != os.getpid():
            with self._lock:
                if self._process != os.getpid():
                    self._begin()
        return self._own_reader

    # --- questions ---------------------------------------------------------------------------------------------------

    def capacity(self) -> Capacity:
        """What the nodes have that tasks may use, less what others' pods ask for: from this process's watches, where
        they are live, else from two lists."""
        return self._count.of(*self._reader.capacity())

    def machines(self) -> list[Machine]:
        """The cluster's nodes, from the same objects as `capacity`."""
        return self._count.machines(*self._reader.capacity())

    def devices(self) -> dict[str, str]:
        """Those of the operator's pools."""
        return {one.asked_as: one.shown for one in self.options.pools if one.device}

    def runs_images(self) -> bool:
        """Any that the nodes can pull: a container is made of it as it is."""
        return True

    def has_own_spark(self) -> bool:
        """Whether its operator names an image that has one."""
        return bool(self.options.spark_image)

    def missing_for_spark(self) -> str:
        """See `RunsSpark`. What is in an image is not known before it runs."""
        return "" if self.has_own_spark() else NO_SPARK

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        """From what this process's watches told, where that may be believed; else one list per kind for all keys
        together. Events only where something is held up without saying why."""
        return self._reader.observe(keys)

    def preview(self, spec: TrainingSpec, key: JobKey, user: uuid.UUID | None = None) -> list[dict[str, Any]]:
        """The manifests in the order in which they are applied, the token and the owner's uid left out."""
        run = Run.of(spec, key, replace(_TO_SHOW, user=user), self.options)
        run.refuse_impossible()
        return run.all()

    def tail(self, key: JobKey, role: Role, index: int, lines: int) -> list[str]:
        """The last lines of the container's own output, of its last life that printed any (of 2 MiB at most)."""
        pod = self._reader.newest_pod(key, role, index)
        if pod is None or lines <= 0:
            return []
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        text = self._api.log(namespace, name, names.CONTAINER, lines)
        text = text or self._api.log(namespace, name, names.CONTAINER, lines, previous=True)
        return text.splitlines()[-lines:]

    def servers(self, spec: TrainingSpec, key: JobKey) -> Servers:
        """The tasks' names in the cluster's DNS, which are the same before they are made."""
        addresses = {Role(role): tuple(hosts) for role, hosts in cluster_map(spec, key, self.options).items()}
        place = f"the cluster's namespace {self._namespace(key)}"
        reach = f"Only from notebooks, and from pods with the label {names.RUN}={key.name}, of {place}."
        return Servers(addresses, reach, f"{WORK_DIR}/data")

    def address(self, spec: TrainingSpec, key: JobKey, role: Role, index: int) -> Address | None:
        """The address of the pod that is this task now: the portal may be outside of the cluster's DNS. One that ends
        has none any more, though the server shows it for a while."""
        if role not in server_roles(spec):
            return None
        pod = self._reader.newest_pod(key, role, index)
        if pod is None or is_ending(pod) or not lives(pod):
            return None
        host = (pod.get("status") or {}).get("podIP") or ""
        return Address(host, self.options.port) if host else None

    def missing(self, key: JobKey) -> str:
        """Its owner, without which nothing counts."""
        return f"The ConfigMap {key.name} is not on the cluster."

    def changes(self) -> Iterator[JobKey]:
        """Runs that have changed, for ever, from this call on."""
        return self._watching.keys()

    def close(self) -> None:
        """End the watches, where there are any; with the process they end as well."""
        self._watching.close()

    # --- actions -----------------------------------------------------------------------------------------------------

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        """Ask the server about the workloads, then apply everything. Where it was begun before, finish it. Raises
        `Unavailable` while the cluster still deletes what was there before under this key."""
        with self._writing(key):
            owner = self._submitter.submit(spec, key, access)
            if owner is not None:
                self._settle(key, owner)

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        """Note the facts of these roles' tasks, then delete their workloads, or the token where they are all that
        belongs to it; the cluster ends the pods that belong to them, with the time that the spec gives."""
        with self._writing(key):
            self._end(key, roles)

    def finish(self, key: JobKey) -> None:
        """Delete the owner, with one write for any number of roles: the cluster deletes what belongs to it, and the
        owner when that has ended. Nothing is noted: the caller knows how the tasks were."""
        with self._writing(key):
            self._api.delete("ConfigMap", self._namespace(key), key.name, last=True)

    def stop(self, key: JobKey, grace: timedelta) -> None:
        """The same for all roles, with this grace period (whole seconds, at least one)."""
        with self._writing(key):
            self._end(key, tuple(Role), ceil(grace.total_seconds()))

    def clean_up(self, key: JobKey) -> None:
        """Delete the owner: its end takes everything along. Where pods still live, or may be created again, first they
        and their workloads, and then what is left of them by force. Cut off, it is repeated."""
        namespace = self._namespace(key)
        with self._writing(key):
            seen = self._reader.see([key])[key]
            if seen.owner is None:
                return
            some_live = any(lives(pod) for pod in seen.pods)
            if not some_live and goes_by_itself(seen.owner):
                return
            if some_live or has_left_over(seen):
                self._delete(key, _shape_of(seen.owner).roles, seen.owner["metadata"]["uid"], grace=1)
                self._api.delete_pods(namespace, f"{names.RUN}={key.name}", 0)
            self._api.delete("ConfigMap", namespace, key.name)

    def restart(self, key: JobKey) -> bool:
        """Note which pods were there, then evict them; their controllers make new ones. Interrupted between the two,
        the next call finds the note and ends the rest."""
        for _ in range(_TRIES):
            with self._writing(key):
                seen = self._reader.see([key])[key]
                found = due_in(seen)
                if found is None or seen.owner is None:
                    return False
                try:
                    if found.new:
                        self._note(key, seen.owner, {GANG_RESTARTS: found.note.to_json()})
                except Conflict:
                    continue
                except Absent:
                    return False
                shape = _shape_of(seen.owner)
                for pod in found.pods:
                    grace = shape.time_to_restart(Role(pod["metadata"]["labels"][names.ROLE]))
                    self._api.evict(self._namespace(key), pod["metadata"]["name"], pod["metadata"]["uid"], grace)
                return True
        raise _changes_all_the_time(key)

    # --- namespaces --------------------------------------------------------------------------------------------------

    def shape(self, namespace_id: uuid.UUID, quota: Quota, portal_url: str) -> tuple[str, ...]:
        """Read every object of the namespace, and write those that are missing or say something else."""
        return self._shaper.shape(namespace_id, quota, portal_url)

    def remove(self, namespace_id: uuid.UUID) -> Remains:
        """Delete the namespace; its controllers delete what is in it. What holds that up is named."""
        return self._shaper.remove(namespace_id)

    def offers_volumes(self) -> bool:
        """Where `volume_class` is set."""
        return bool(self.options.volume_class)

    def check_volumes(self) -> Finding:
        """Whether the cluster has the StorageClass; unknown where the portal may not read storage classes."""
        return class_check(self._api, "volume_class", self.options.volume_class, "volumes")

    def keep_volumes(self, namespace_id: uuid.UUID, wanted: Mapping[VolumeKind, int]) -> dict[VolumeKind, VolumeState]:
        """Its PersistentVolumeClaims, with the events about those that are not as wanted."""
        return self._volumes.keep(namespace_id, wanted)

    def home_size(self) -> int | None:
        """`home_size`; None where it is empty."""
        return self._homes.size()

    def check_homes(self) -> Finding | None:
        """Whether the cluster has the StorageClass `home_class`; None where the cluster's default is used, or none."""
        if not (self.options.home_size and self.options.home_class):
            return None
        return class_check(self._api, "home_class", self.options.home_class, "homes of notebooks")

    def home_use(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> HomeUse:
        """What its PersistentVolumeClaim asks for."""
        return self._homes.use(namespace_id, owner_id)

    def remove_home(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> bool:
        """Delete its PersistentVolumeClaim."""
        return self._homes.remove(namespace_id, owner_id)

    def namespaces_there(self) -> tuple[uuid.UUID, ...]:
        """From the labels of the cluster's namespaces: those that this portal signed, with its prefix."""
        return self._shaper.namespaces_there()

    def probe(self, probe: Probe, portal_url: str) -> Finding:
        """With pods in a namespace of its own, which is removed again."""
        return probes.run(probe, probes.Prober(self._api, self.options), portal_url)

    # --- parts -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self, key: JobKey) -> Iterator[None]:
        """Whatever comes of it: what was known of the run before is too old now. Begins before the first question."""
        try:
            yield
        finally:
            self._reader.wrote(key)

    def _namespace(self, key: JobKey) -> str:
        return names.namespace_name(key.namespace_id, self.options)

    def _settle(self, key: JobKey, owner: Mapping[str, Any]) -> None:
        """What was asked to end meanwhile ends again: some of it may have been made only afterwards. Cleaned up
        meanwhile: what was made has no owner and is deleted by the cluster."""
        now = self._submitter.owner(key)
        if now is None or now["metadata"]["uid"] != owner["metadata"]["uid"]:
            return
        ended = released_in(now.get("data") or {})
        if ended:
            self._delete(key, ended, now["metadata"]["uid"])

    def _end(self, key: JobKey, wanted: Collection[Role], grace: int | None = None) -> None:
        """Note, then delete. Who comes second finds it noted and deletes again, which hastens and harms nothing.
        `grace` None: the spec's."""
        for _ in range(_TRIES):
            seen = self._reader.see([key])[key]
            if seen.owner is None:
                return
            shape, data, observed = _shape_of(seen.owner), seen.owner.get("data") or {}, observation_of(seen).tasks
            roles = [role for role in shape.roles if role in wanted]
            if not roles:
                return
            now, known = datetime.now(UTC), released_in(data)
            notes = {
                released_key(role): release_of(role, now, observed).to_json() for role in roles if role not in known
            }
            try:
                if notes:
                    self._note(key, seen.owner, notes)
            except Conflict:
                continue
            except Absent:
                return
            seconds = shape.time_to_end if grace is None else grace
            is_usual = seconds == shape.time_to_end and len(notes) == len(roles)
            if is_usual and go_with_token(seen, roles):
                self._api.delete("Secret", self._namespace(key), names.token_name(key))
            else:
                self._delete(key, roles, seen.owner["metadata"]["uid"], None if is_usual else seconds)
            return
        raise _changes_all_the_time(key)

    def _note(self, key: JobKey, owner: Mapping[str, Any], notes: Mapping[str, str]) -> None:
        """Into the owner as it was read, or not at all: two who end a run at once must not lose each other's notes."""
        version = owner["metadata"]["resourceVersion"]
        change = {"metadata": {"resourceVersion": version}, "data": notes}
        self._api.patch("ConfigMap", self._namespace(key), key.name, change)

    def _delete(self, key: JobKey, roles: Iterable[Role], owner_uid: str, grace: int | None = None) -> None:
        """The workloads: the cluster ends their pods at once, with the time that the spec gives. Before them the pods,
        where they are to have another `grace`, or some may have begun to end with another: the first time that a
        kubelet hears counts, as of Kubernetes 1.34 (SyncTerminatingPod, kubernetes#113606)."""
        namespace, some = self._namespace(key), sorted(roles)
        if grace is not None:
            labels = f"{names.OWNER}={owner_uid},{names.ROLE} in ({','.join(some)})"
            self._api.delete_pods(namespace, labels, max(1, grace))
        for role in some:
            self._api.delete(workload_kind(role), namespace, names.workload_name(key, role))


def _changes_all_the_time(key: JobKey) -> Unavailable:
    return Unavailable(f"The record of {key.name} changes all the time.")


def _shape_of(owner: Mapping[str, Any]) -> RunShape:
    return RunShape.from_json(owner["data"][RECORD])
