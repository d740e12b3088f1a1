"""One entry of `tfReplicaSpecs`: how many tasks of a role there are, and what the container of each runs with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from yardmaster.job.spec import Role
from yardmaster.job.spec_limits import DEFAULT_LIMITS, shorten
from yardmaster.job.spec_reading import HUGE, show
from yardmaster.job.spec_rules import is_extended_name
from yardmaster.job.spec_texts import variable_problems
from yardmaster.job.tfjob.parts import Kind, Part
from yardmaster.job.tfjob.volumes import Mount, mounts_of
from yardmaster.quantity import exact_bytes

CONTAINER = "tensorflow"
GPU = "nvidia.com/gpu"
ROLES = {"chief": Role.CHIEF, "master": Role.CHIEF, "worker": Role.WORKER, "ps": Role.PS, "evaluator": Role.EVALUATOR}
_QUANTITY = re.compile(
    r"([0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:[eE]([0-9]{1,2})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII
)
_SMALL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_POD_WORDS = {
    "nodeSelector": "The administrator of the engine sets on which nodes tasks run: ask for gpus or a device instead.",
    "tolerations": "The administrator of the engine sets on which nodes tasks run: ask for gpus or a device instead.",
    "affinity": "Tasks of a job are put near each other where they fit, and GPUs are asked for by gpus.",
    "initContainers": "Put what they prepare into a dataset, into the code or into requirements.txt.",
    "imagePullSecrets": "The administrator of the engine sets from which registries tasks get their images.",
    "serviceAccountName": "Tasks have no account of the cluster: give credentials as secrets of the namespace.",
    "priorityClassName": "Set priority, a number that orders the jobs of your namespace.",
    "hostNetwork": "Each task has a network address of its own.",
    "securityContext": "Tasks run as the user that the engine sets, without rights.",
}


@dataclass(frozen=True)
class Replica:
    """What is known of the tasks of one role."""

    role: Role
    place: str
    """Where in the TFJob."""
    count: int
    restart_policy: str
    shape: Mapping[str, Any]
    """cpu, memory, gpus and extended, as a job file has them; without what is not asked for."""
    argv: tuple[str, ...] = ()
    working_dir: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[Mapping[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    image: str = ""
    grace_period: int | None = None


def replicas_of(specs: Part) -> list[Replica]:
    """The entries with at least one task."""
    found = []
    for name, value in specs.items():
        role = ROLES.get(name.lower())
        part = Part(specs.name(name), value, specs.findings)
        if role is None:
            specs.findings.refuse(part.field, "a replica type: Chief, Master, Worker, PS or Evaluator", name)
        else:
            found.append(_replica(role, part))
    return [one for one in found if one.count]


def _replica(role: Role, part: Part) -> Replica:
    count, policy = part.whole("replicas"), part.text("restartPolicy")
    template = part.part("template")
    template.skip("metadata")  # labels and annotations are for the cluster's own programs
    pod = template.part("spec")
    container = _container(pod)
    made = Replica(
        role, part.field, 1 if count is None else min(count, DEFAULT_LIMITS.tasks + 1), policy, _shape(container),
        argv=(*container.texts("command"), *container.texts("args")),
        working_dir=container.text("workingDir"),
        environment=_environment(container),
        secrets=tuple(_secrets(container)),
        mounts=tuple(mounts_of(pod, container)),
        image=container.text("image"),
        grace_period=pod.whole("terminationGracePeriodSeconds"),
    )  # fmt: skip
    _list_rest(role, part, template, pod, container)
    return made


def _list_rest(role: Role, part: Part, template: Part, pod: Part, container: Part) -> None:
    """What a job file has no word for."""
    for key, remedy in _POD_WORDS.items():
        if pod.has(key):
            pod.skip(key)
            part.findings.note(Kind.LEFT_OUT, pod.name(key), f"{key} is left out.", remedy)
    container.skip("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "stdin", "tty")
    pod.skip("restartPolicy", "automountServiceAccountToken", "enableServiceLinks", "dnsPolicy", "schedulerName")
    for one in container.parts("ports"):
        if one.whole("containerPort") not in (None, 2222):
            message = "Ports are left out: each task's TensorFlow server has one that the engine chooses."
            part.findings.note(Kind.LEFT_OUT, container.name("ports"), message)
    part.list_unread(f"The role {role.value}")
    template.list_unread(f"The role {role.value}")
    pod.list_unread(f"The pod of {role.value}")
    container.list_unread(f"The container of {role.value}")


def _container(pod: Part) -> Part:
    """The one called `tensorflow`, which the operator takes, or the first. The others are listed."""
    parts = pod.parts("containers")
    if not parts:
        pod.findings.refuse(pod.name("containers"), "a list with a container called tensorflow", None)
        return Part(pod.name("containers.0"), {}, pod.findings)
    called = [one.text("name") for one in parts]
    chosen = called.index(CONTAINER) if CONTAINER in called else 0
    for number, name in enumerate(called):
        if number != chosen:
            message = f"The container {shorten(name) or number} is left out: a task has one container."
            remedy = "Start what it does from the script, or run it as a service beside the job."
            pod.findings.note(Kind.LEFT_OUT, parts[number].field, message, remedy)
    return parts[chosen]


def _shape(container: Part) -> dict[str, Any]:
    """What each task asks for. The portal gives what is asked for, no more and no less: a limit counts, else what is
    requested."""
    resources = container.part("resources")
    limits, requests = dict(resources.part("limits").items()), dict(resources.part("requests").items())
    resources.skip("claims")
    shape: dict[str, Any] = {}
    for name in dict.fromkeys([*limits, *requests]):
        asked = limits.get(name, requests.get(name))
        amount = _amount(asked)
        if amount is None:
            resources.findings.refuse(resources.name(f"limits.{shorten(name)}"), "an amount such as 2 or 4Gi", asked)
            continue
        if name in limits and name in requests and amount != _amount(requests[name]):
            message = f"{shorten(name)}: the limit {show(asked)} is asked for, not the request {show(requests[name])}."
            remedy = "A task has what it asks for, and no more. Write less where your quota is small."
            resources.findings.note(Kind.CHANGED, resources.name(shorten(name)), message, remedy)
        _ask(shape, resources, name, amount)
    return shape


def _ask(shape: dict[str, Any], resources: Part, name: str, amount: Decimal) -> None:
    if name == "cpu":
        cores = round(float(amount), 3)
        shape["cpu"] = int(cores) if cores == int(cores) else cores
    elif name == "memory":
        shape["memory"] = exact_bytes(int(amount))
    elif not amount:
        return
    elif name == GPU:
        shape["gpus"] = int(amount)
    elif "/" in name and is_extended_name(name):
        shape.setdefault("extended", {})[name] = int(amount)
    else:
        message = f"{shorten(name)} is left out: the engine's administrator bounds what tasks write."
        resources.findings.note(Kind.LEFT_OUT, resources.name(shorten(name)), message)


def _amount(value: object) -> Decimal | None:
    """A quantity as Kubernetes writes it; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, int) and abs(value) >= HUGE:  # which Python would not write out
        return None
    found = _QUANTITY.fullmatch(str(value).strip()[:40])
    if found is None:
        return None
    number, power, unit = Decimal(found[1]), found[2], found[3]
    if power:
        return number.scaleb(int(power)) if int(power) <= 18 else None
    if unit in _BINARY:
        return number * (1 << _BINARY[unit])
    return number.scaleb(_SMALL[unit]) if unit else number


def _environment(container: Part) -> dict[str, str]:
    """Plain values. Where a value comes from elsewhere, it is listed or a secret."""
    found: dict[str, str] = {}
    if container.has("envFrom"):
        remedy = "Write the variables into environment, and what is secret as secrets of the namespace."
        message = "envFrom takes all of a ConfigMap or Secret of the cluster, whose names are not in the TFJob."
        container.findings.note(Kind.TO_DO, container.name("envFrom"), message, remedy)
    container.skip("envFrom")
    for one in container.parts("env"):
        name = one.text("name")
        if one.has("valueFrom"):
            _from_elsewhere(one, name)
            continue
        value = one.text("value")
        if problem := next(variable_problems(one.field, name), None):
            container.findings.note(Kind.LEFT_OUT, one.field, f"{problem.message} It is left out.", problem.remedy)
        else:
            found[name] = value
    return found


def _from_elsewhere(one: Part, name: str) -> None:
    source = one.part("valueFrom")
    if source.has("secretKeyRef"):
        return
    if source.has("fieldRef") or source.has("resourceFieldRef"):
        remedy = "A task knows YARDMASTER_ROLE, YARDMASTER_INDEX and TF_CONFIG."
        message = f"{shorten(name)} is of the pod, which no job file names. It is left out."
        one.findings.note(Kind.LEFT_OUT, one.field, message, remedy)
    else:
        remedy = "Write its value into environment."
        message = f"The value of {shorten(name)} is in a ConfigMap of the cluster. It is left out."
        one.findings.note(Kind.TO_DO, one.field, message, remedy)


def _secrets(container: Part) -> list[Mapping[str, str]]:
    """Variables whose values are in Secrets of the cluster: secrets of the portal's namespace, named after them."""
    found: list[Mapping[str, str]] = []
    for one in container.parts("env"):
        reference, env = one.part("valueFrom").part("secretKeyRef"), one.text("name")
        if not reference.has("name") or next(variable_problems(one.field, env), None):
            continue
        secret, key = reference.text("name"), reference.text("key")
        name = re.sub(r"[^A-Za-z0-9_]", "_", f"{secret}_{key}")[:128]
        name = name if not name[:1].isdigit() else f"_{name}"[:128]
        found.append({"name": name, "env": env})
        message = f"{env} is the secret {name}: its value is the key {shorten(key)} of the Secret {shorten(secret)}."
        remedy = f"Create it in your namespace: yardmaster secrets set {name}"
        container.findings.note(Kind.TO_DO, one.field, message, remedy)
    return found
