"""What the first view of a page costs: requests, bytes over the wire, and when its largest part was painted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from playwright.sync_api import WebSocketRoute

from tests.browser.visitor import Visitor

MOST_REQUESTS = 10
MOST_BYTES = 300_000
_OF_A_JOB = re.compile(r"/ws/jobs/[^/?]+/$")
_TYPE = re.compile(r'\{"type": "(\w+)"')
_PAINT = """() => new Promise((done) => {
    let last = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) last = entry.startTime; })
        .observe({ type: "largest-contentful-paint", buffered: true });
    setTimeout(() => done(last), 100);
})"""


def _without_nudges(socket: WebSocketRoute) -> None:
    """Nor is the page of a job greeted: it asks again if it is old by then."""
    dropped = ("ready", "job") if _OF_A_JOB.search(socket.url) else ("job",)
    server = socket.connect_to_server()
    server.on_message(lambda said: None if _type_of(said) in dropped else socket.send(said))


def _type_of(said: str | bytes) -> str | None:
    found = _TYPE.match(said) if isinstance(said, str) else None
    return found and found.group(1)


@dataclass
class Weight:
    """Requests that went out (no WebSockets, nothing inlined), bytes as transferred, largest paint in seconds."""

    addresses: list[str] = field(default_factory=list)
    bytes: int = 0
    largest_paint: float = 0.0

    @property
    def requests(self) -> int:
        return len(self.addresses)


def weigh(visitor: Visitor, path: str, status: int = 200) -> Weight:
    """Open the page, which must answer with this status, with an empty cache and let it come to rest. That a job has
    changed meanwhile it does not hear: how often it asks again depends on how long the first view takes."""
    weight = Weight()
    protocol = visitor.context.new_cdp_session(visitor.page)
    protocol.send("Network.enable")
    protocol.send("Network.setCacheDisabled", {"cacheDisabled": False})

    def sent(event: dict) -> None:
        if not event["request"]["url"].startswith("data:"):
            weight.addresses.append(event["request"]["url"])

    def finished(event: dict) -> None:
        weight.bytes += int(event["encodedDataLength"])

    protocol.on("Network.requestWillBeSent", sent)
    protocol.on("Network.loadingFinished", finished)
    visitor.page.route_web_socket(re.compile("/ws/jobs/"), _without_nudges)
    visitor.goto(path, status)
    visitor.page.wait_for_load_state("networkidle")
    weight.largest_paint = visitor.page.evaluate(_PAINT) / 1000
    return weight
