"""What `make up` does about a cluster that it finds: pure functions of facts. Not here: finding out, and asking."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from portal.cluster.found import Target

DEVELOPMENT_IMAGE = "localhost/yardmaster/task:dev"
"""What the project's own task image is called where it was built and loaded by hand."""
DEVELOPMENT_WORKBENCH = "localhost/yardmaster/workbench:dev"
"""The same of its image of notebooks."""
MOST_CANDIDATES = 8
NAME_THE_NOTEBOOKS = (
    "No node has an image of notebooks: Jupyter starts where the image of tasks has JupyterLab. Else build the target "
    "workbench of deploy/images/task/Dockerfile, and name it: YARDMASTER_KUBERNETES_WORKBENCH_IMAGE=<image>"
)
NAME_THE_IMAGE = "Name the image that tasks run: YARDMASTER_KUBERNETES_IMAGE=registry.example/training:1"


class Course(Enum):
    """What becomes of the offer."""

    NOTHING = "nothing"
    MENTION = "mention"
    """Say how to turn it on, and ask nothing of the cluster."""
    ASK = "ask"
    GO_AHEAD = "go ahead"
    AS_BEFORE = "as before"
    """What was chosen the last time still holds."""


@dataclass(frozen=True)
class Chosen:
    """What was found out once and holds until the cluster, the image or this machine's addresses change."""

    target: Target
    image: str
    host: str
    workbench_image: str = ""


@dataclass(frozen=True)
class Situation:
    """All that the course depends on."""

    target: Target | None
    is_wanted: bool
    """The command said so (`make up ENGINE=kubernetes`)."""
    is_set: bool
    """The operator's own settings say whether there is the engine: they are not added to."""
    has_terminal: bool
    remembered: Chosen | None = None
    declined: Target | None = None
    addresses: tuple[str, ...] = ()
    """This machine's."""
    image: str = ""
    """What the operator's settings name."""
    host: str = ""
    """Where the operator has the portal listen, where that was said."""


def course_of(now: Situation) -> Course:
    """Nothing is asked of a cluster, and nothing written to it, without consent: the command's, or that of a person
    at a terminal. Consent and refusal hold for the cluster that they were said of."""
    if now.is_set and not now.is_wanted:
        return Course.NOTHING
    if now.target is None:
        return Course.GO_AHEAD if now.is_wanted else Course.NOTHING
    if now.remembered is not None and _still_holds(now.remembered, now):
        return Course.AS_BEFORE
    if now.is_wanted or (now.remembered is not None and now.remembered.target == now.target):
        return Course.GO_AHEAD
    if now.declined == now.target or not now.has_terminal:
        return Course.MENTION
    return Course.ASK


def _still_holds(chosen: Chosen, now: Situation) -> bool:
    return (
        chosen.target == now.target
        and chosen.host in now.addresses
        and now.image in ("", chosen.image)
        and (is_everywhere(now.host) or now.host in ("", chosen.host))
    )


def candidates(towards_cluster: str, addresses: Sequence[str], host: str = "") -> list[str]:
    """Where pods may reach this machine, the likeliest first: the address that it has for the cluster, then the others.
    `host`, where the operator has the portal listen, is the only one, unless it means all. Never an address of the
    Internet: a portal does not begin to listen there unless it is asked to."""
    if host and not is_everywhere(host):
        return [] if _is_loopback(host) else [host]
    found = dict.fromkeys(one for one in (towards_cluster, *addresses) if one)
    usable = [one for one in found if _is_of_this_network(one)]
    return sorted(usable, key=lambda one: (one != towards_cluster, ":" in one))[:MOST_CANDIDATES]


def is_everywhere(host: str) -> bool:
    """Whether listening there means all addresses of the machine."""
    return host in ("0.0.0.0", "::")


def image_of(named: str, on_nodes: Sequence[str], own: str = DEVELOPMENT_IMAGE) -> str:
    """The image of tasks: the one that is named, else the project's own where a node has it; else empty."""
    return named or (own if own in on_nodes else "")


def chosen_host(tried: Sequence[str], outcomes: Mapping[str, str]) -> str:
    """The first address at which a pod reached this machine; `outcomes` has an empty text for those, else the trouble.
    Empty where there is none."""
    return next((one for one in tried if outcomes.get(one) == ""), "")


def why_none(tried: Sequence[str], outcomes: Mapping[str, str]) -> str:
    """What to tell where no address will do, with the remedy."""
    if not tried:
        return (
            "This machine has no address of a private network that pods could reach. Where they reach another one, "
            "name it: YARDMASTER_HOST=<address> make up ENGINE=kubernetes"
        )
    lines = [f"  {one}: {outcomes.get(one) or 'nothing is known of it.'}" for one in tried]
    return "\n".join(
        [
            "Pods reach this machine at none of its addresses:",
            *lines,
            "Open the portal's port to the cluster's nodes and pods in this machine's firewall, or name an address "
            "that they reach: YARDMASTER_HOST=<address> make up ENGINE=kubernetes. Where a proxy or load balancer "
            "leads here, set YARDMASTER_TASK_URL to its address too.",
        ]
    )


def settings_of(chosen: Chosen, base: Mapping[str, str], port: int) -> dict[str, str]:
    """What the portal's processes are told besides. The operator's own words stand; the context is pinned, so that
    another choice with kubectl moves no portal."""
    found = {
        "YARDMASTER_KUBERNETES": "1",
        "YARDMASTER_KUBECONFIG": chosen.target.kubeconfig,
        "YARDMASTER_KUBERNETES_CONTEXT": chosen.target.context,
        "YARDMASTER_KUBERNETES_IMAGE": chosen.image,
        "YARDMASTER_KUBERNETES_WORKBENCH_IMAGE": chosen.workbench_image,
        "YARDMASTER_TASK_URL": f"http://{bracketed(chosen.host)}:{port}",
        "YARDMASTER_DEFAULT_ENGINE": "kubernetes",
    }
    variables = {name: value for name, value in found.items() if not base.get(name)}
    hosts = base.get("YARDMASTER_ALLOWED_HOSTS") or "127.0.0.1,localhost,[::1]"
    if bracketed(chosen.host) not in hosts.split(","):
        hosts = f"{hosts},{bracketed(chosen.host)}"
    return {**variables, "YARDMASTER_ALLOWED_HOSTS": hosts}


def bracketed(host: str) -> str:
    """As it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def _is_of_this_network(address: str) -> bool:
    try:
        one = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (one.is_global or one.is_loopback or one.is_link_local or one.is_unspecified or one.is_multicast)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_NOTE = "cluster-settings.json"
_COMMANDS = ("doctor", "engine_namespaces")
"""Those of `manage.py` that ask engines. Others run in the portal's own processes, or need no engine."""


def note_settings(home: Path, settings: Mapping[str, str]) -> None:
    """Keep what the processes are told besides the operator's own variables; nothing where there is no such thing."""
    file = home / "run" / _NOTE
    draft = file.with_name(f"{_NOTE}.{os.getpid()}")
    draft.write_text(json.dumps(dict(settings)))
    draft.replace(file)


def settings_for_command(arguments: list[str], environment: Mapping[str, str], root: Path) -> dict[str, str]:
    """What a command with these arguments is told besides. Nothing where the operator's own variables say whether there
    is the engine, as in `make up`; a variable of theirs always stands."""
    if not arguments[1:2] or arguments[1] not in _COMMANDS:
        return {}
    if environment.get("YARDMASTER_KUBERNETES") or environment.get("YARDMASTER_KUBECONFIG"):
        return {}
    home = Path(environment.get("YARDMASTER_HOME") or root / ".yardmaster")
    with contextlib.suppress(OSError, ValueError, AttributeError):
        noted = json.loads((home / "run" / _NOTE).read_text())
        return {str(name): str(value) for name, value in noted.items() if not environment.get(name)}
    return {}
