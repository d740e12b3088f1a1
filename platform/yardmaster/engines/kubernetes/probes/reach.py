"""Do tasks reach the portal? A pod asks what a runner asks first, at the portal's address as tasks receive it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from yardmaster.engines.base import Finding
from yardmaster.engines.kubernetes.probes.pod import ProbeAnswer, nonsense
from yardmaster.engines.kubernetes.probes.prober import PATIENCE, Prober
from yardmaster.engines.kubernetes.render.options import TaskOptions

ASKED = "/api/v1/task/order/?role=worker&index=0"
"""What a runner asks first. Without a token the portal refuses it, in words that nothing else answers with."""
PROBLEM_TYPE = "application/problem+json"
TRIES_FOR = 8.0
"""Seconds in which the pod tries again: a network may take some seconds to let a new pod through."""

PROGRAM = """
import json, sys, threading, time, urllib.error, urllib.request

TRIES_FOR = float(sys.argv[1])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
found = {}

def ask(url):
    try:
        try:
            answer = opener.open(url, timeout=4)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read(80).decode("ascii", "replace")
        return {"status": answer.code, "type": answer.headers.get("Content-Type") or "", "text": text}
    except Exception as error:
        return {"error": str(getattr(error, "reason", error))[:150] or type(error).__name__}

def keep_asking(name, url):
    end = time.time() + TRIES_FOR
    while True:
        found[name] = ask(url)
        if "status" in found[name] or time.time() > end:
            return
        time.sleep(0.5)

threads = [threading.Thread(target=keep_asking, args=(str(n), url)) for n, url in enumerate(sys.argv[2:])]
for one in threads:
    one.daemon = True
    one.start()
for one in threads:
    one.join(TRIES_FOR + 6)
with open("/dev/termination-log", "w") as log:
    log.write(json.dumps(found))
"""


@dataclass(frozen=True)
class Seen:
    """What came of one address, as the pod saw it: an answer, or why there was none."""

    status: int = 0
    content_type: str = ""
    text: str = ""
    error: str = ""


@dataclass(frozen=True)
class Found:
    """What came of a probe. With a `problem` the pod told nothing: nothing is known of any address."""

    seen: Mapping[str, Seen]
    """By URL of the portal."""
    problem: str = ""


def find(prober: Prober, portal_url: str, patience: float = PATIENCE) -> Finding:
    """Whether tasks reach a portal at this address, under the policies of their namespaces."""
    url = (prober.options.portal_url or portal_url).rstrip("/")
    return finding_of(try_all(prober, [url], patience), url, prober.options)


def try_all(prober: Prober, urls: Sequence[str], patience: float = PATIENCE) -> Found:
    """Try all of them at once, from one pod."""
    with prober.namespace(urls[0], patience) as namespace:
        answer = namespace.tell("reach", ["-c", PROGRAM, str(TRIES_FOR), *(url.rstrip("/") + ASKED for url in urls)])
    return found_in(answer, urls)


def for_candidates(options: TaskOptions, cidrs: Sequence[str], port: int) -> TaskOptions:
    """The same, with policies that let pods through to all of these addresses of the portal."""
    return replace(options, portal_cidrs=tuple(cidrs), portal_port=port, portal_url="")


def found_in(answer: ProbeAnswer, urls: Sequence[str]) -> Found:
    """What the pod's words say of each address."""
    try:
        read = answer.table()
        seen = {url: _seen(read[str(n)]) for n, url in enumerate(urls) if str(n) in read}
    except (ValueError, TypeError, AttributeError, KeyError):
        seen = {}
    return Found(seen, "" if seen else nonsense(answer))


def is_the_portal(seen: Seen) -> bool:
    """Whether what answered is the task API of a portal that lets this address in."""
    return seen.status == 401 and seen.content_type.startswith(PROBLEM_TYPE)


def finding_of(found: Found, url: str, options: TaskOptions) -> Finding:
    """Whether tasks reach the portal at this address, in words for people. Where nothing is known, nothing is said
    against it."""
    seen = found.seen.get(url)
    if seen is None:
        return Finding(None, f"It is not known whether pods reach the portal at {url}. {found.problem}".strip())
    if is_the_portal(seen):
        return Finding(True, f"Pods reach the portal at {url}.")
    if seen.status == 429 or seen.status >= 500:
        return Finding(None, f"It is not known whether pods reach the portal at {url}: it answered {seen.status}.")
    host = urlsplit(url).hostname or ""
    if not seen.status:
        message = f"Pods do not reach the portal at {url}: {seen.error}."
        return Finding(False, message, _how_to_be_reached(host, options))
    message = f"What pods find at {url} is not this portal's task API: it answered {seen.status}."
    if seen.status == 400 and seen.content_type.startswith(PROBLEM_TYPE):
        message = f"The portal refuses what pods ask it at {url}: it does not know itself as {host}."
        return Finding(False, message, f"Add {host} to YARDMASTER_ALLOWED_HOSTS.")
    return Finding(False, message, "Set YARDMASTER_TASK_URL to the portal's address as pods reach it.")


def _how_to_be_reached(host: str, options: TaskOptions) -> str:
    if is_loopback(host):
        return (
            f"For a pod {host} is the pod itself: let the portal listen at an address of its machine that pods reach "
            "(YARDMASTER_HOST), and set YARDMASTER_TASK_URL to it."
        )
    return (
        f"Let the portal listen at {host} (YARDMASTER_HOST), or set YARDMASTER_TASK_URL to where pods reach it; look "
        "at firewalls on the way and, in YARDMASTER_KUBERNETES_TASKS, at portal_cidrs and portal_port."
    )


def is_loopback(host: str) -> bool:
    """Whether this means the asking machine itself, wherever it is asked."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _seen(answer: Mapping[str, Any]) -> Seen:
    return Seen(
        status=int(answer.get("status") or 0),
        content_type=str(answer.get("type") or ""),
        text=str(answer.get("text") or ""),
        error=str(answer.get("error") or ""),
    )
