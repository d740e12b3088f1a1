"""Whether tasks can reach the portal at all, as far as the settings tell: those that contradict each other. Pure, but
for `reach_of`, which reads them.

Not here: whether an address really answers, which only a task can tell.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.http.request import validate_host

from portal import env
from yardmaster.errors import Problem

TASK_URL = "YARDMASTER_TASK_URL"


@dataclass(frozen=True)
class Reach:
    """What the settings say of the way from tasks to the portal."""

    task_url: str
    pod_url: str | None
    """The portal as pods are told it; None where no engine makes pods."""
    pod_url_is_own: bool
    """It is the engine's own option, and not the address for all tasks."""
    allowed_hosts: Sequence[str]
    listens_on: str
    """The host, as `make up` is told it; empty: something else starts the web process."""
    is_behind_proxy: bool


def reach_of(settings: Any) -> Reach:
    """What there is in Django's settings and in the environment."""
    tasks = _options_of_pods(settings.YARDMASTER_ENGINES)
    own = "" if tasks is None else str(tasks.get("portal_url") or "")
    return Reach(
        task_url=settings.TASK_URL,
        pod_url=None if tasks is None else own or settings.TASK_URL,
        pod_url_is_own=bool(own),
        allowed_hosts=settings.ALLOWED_HOSTS,
        listens_on=env.text("YARDMASTER_HOST"),
        is_behind_proxy=settings.SECURE_PROXY_SSL_HEADER is not None,
    )


def contradictions(reach: Reach) -> Iterator[Problem]:
    """What keeps every task from the portal. `field` is the variable, `remedy` what to do about it."""
    addresses = {TASK_URL: reach.task_url}
    if reach.pod_url is not None:
        name = 'YARDMASTER_KUBERNETES_TASKS, "portal_url"' if reach.pod_url_is_own else TASK_URL
        addresses[name] = reach.pod_url
        yield from _of_pods(reach, name, urlsplit(reach.pod_url))
    if not reach.is_behind_proxy:  # which may send another Host
        for name, address in addresses.items():
            yield from _of_the_host(reach, name, urlsplit(address))


def _of_pods(reach: Reach, name: str, address: SplitResult) -> Iterator[Problem]:
    host = address.hostname or ""
    if is_this_machine(host):
        message = f"{name} is {address.geturl()}: in a pod that is the pod itself, and not the portal."
        remedy = f"Set {TASK_URL} to an address of this machine that pods reach, such as http://10.0.0.10:8080."
        yield Problem(name, "pods_cannot_reach", message, remedy, address.geturl())
    elif is_loopback(reach.listens_on) and not reach.is_behind_proxy:
        message = (
            f"YARDMASTER_HOST is {reach.listens_on}: the portal listens on this machine alone, and pods "
            f"are told {address.geturl()} ({name})."
        )
        remedy = "Set YARDMASTER_HOST to 0.0.0.0 or to that address; YARDMASTER_BEHIND_PROXY=1 where a proxy is there."
        yield Problem("YARDMASTER_HOST", "pods_cannot_reach", message, remedy, reach.listens_on)


def _of_the_host(reach: Reach, name: str, address: SplitResult) -> Iterator[Problem]:
    host = f"[{address.hostname}]" if ":" in (address.hostname or "") else address.hostname or ""
    if not validate_host(host, list(reach.allowed_hosts)):
        message = f"YARDMASTER_ALLOWED_HOSTS lacks {host}: every task would be refused at {address.geturl()} ({name})."
        remedy = f"Set YARDMASTER_ALLOWED_HOSTS={','.join([*reach.allowed_hosts, host])}."
        yield Problem("YARDMASTER_ALLOWED_HOSTS", "host_missing", message, remedy, ",".join(reach.allowed_hosts))


def is_loopback(host: str) -> bool:
    """Whether what listens there is reached from this machine alone."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_this_machine(host: str) -> bool:
    """Whether an address means the machine of the program that uses it."""
    return is_loopback(host) or host in ("0.0.0.0", "::", "")


def _options_of_pods(engines: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    for one in engines.values():
        tasks = one.get("options", {}).get("tasks")
        if str(one.get("class", "")).endswith(".KubernetesEngine") and tasks is not None:
            return tasks if isinstance(tasks, Mapping) else vars(tasks)
    return None
