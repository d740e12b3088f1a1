"""`python -m portal.cluster.trying inspect|reach`: what the offer needs to know of a cluster, in a process of its own.

It reads a question as JSON from standard input and prints one line of JSON. `inspect` only reads: the version, and the
names of the images that nodes have. `reach` listens at every candidate address of this machine, and lets a pod try
them, in a namespace that is shaped as all of the portal's are and goes again.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import logging
import secrets
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from portal.cluster.choice import bracketed
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect
from yardmaster.engines.kubernetes.probes import Prober
from yardmaster.engines.kubernetes.probes.reach import PROBLEM_TYPE, Seen, for_candidates, is_the_portal, try_all
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import YardmasterError


def main() -> int:
    logging.disable(logging.WARNING)
    asked = json.loads(sys.stdin.read())
    try:
        answer = {"inspect": inspect, "reach": reach}[sys.argv[1]](asked)
    except YardmasterError as error:
        answer = {"problem": f"{error.message} {error.remedy}".strip()}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def inspect(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster's version, the images on its nodes, and this machine's address on the way to it."""
    api = Api(connect(asked["kubeconfig"], asked["context"]))
    version = api.version()
    images: list[str] = []
    with contextlib.suppress(YardmasterError):  # without the right to list nodes the image is to be named
        images = [name for node in api.find("Node") for name in _images_of(node)]
    return {"version": version, "images": images, "towards": address_towards(asked["server"])}


def reach(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What came of each address: an empty text where a pod reached this machine at it."""
    hosts, port = list(asked["hosts"]), int(asked["port"])
    options = for_candidates(TaskOptions.from_table(asked["tasks"]), _cidrs_of(hosts), port)
    word = secrets.token_hex(8)
    outcomes: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        for host in hosts:
            try:
                stack.enter_context(_listening(host, port, word))
            except OSError as error:
                outcomes[host] = f"The portal cannot listen there: {error.strerror}."
        urls = {_url(host, port): host for host in hosts if host not in outcomes}
        if urls:
            prober = Prober(Api(connect(asked["kubeconfig"], asked["context"])), options)
            found = try_all(prober, list(urls), float(asked["patience"]))
            if found.problem:
                return {"problem": found.problem}
            outcomes |= {host: trouble_of(found.seen.get(url), word) for url, host in urls.items()}
    return {"outcomes": outcomes}


def trouble_of(seen: Seen | None, word: str) -> str:
    """Empty where what the pod met is the listener of this very try."""
    if seen is None:
        return "The pod did not say what came of it."
    if is_the_portal(seen) and word in seen.text:
        return ""
    if seen.status:
        return f"What pods find there is not this machine: it answered {seen.status}."
    return f"A pod did not reach it: {seen.error}."


def address_towards(server: str) -> str:
    """The address that this machine has for the cluster's server; empty where there is no way to it."""
    url = urlsplit(server)
    try:
        found = socket.getaddrinfo(url.hostname, url.port or 443, type=socket.SOCK_DGRAM)
        with socket.socket(found[0][0], socket.SOCK_DGRAM) as probe:
            probe.connect(found[0][4])  # of a datagram socket: nothing is sent
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _images_of(node: Mapping[str, Any]) -> list[str]:
    images = (node.get("status") or {}).get("images") or ()
    return [str(name) for one in images for name in one.get("names") or ()]


def _cidrs_of(hosts: Sequence[str]) -> list[str]:
    return [f"{host}/{128 if ':' in host else 32}" for host in hosts]


def _url(host: str, port: int) -> str:
    return f"http://{bracketed(host)}:{port}"


@contextlib.contextmanager
def _listening(host: str, port: int, word: str) -> Iterator[None]:
    """Answers as the task API does to who has no token, with a word by which this try is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family, "daemon_threads": True})(
        (host, port), type("Handler", (_Handler,), {"word": word})
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    word = ""
    timeout = 10

    def do_GET(self) -> None:
        content = json.dumps({"code": self.word}).encode()
        self.send_response(401)
        self.send_header("Content-Type", PROBLEM_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """The pod says what it met."""


if __name__ == "__main__":
    sys.exit(main())
