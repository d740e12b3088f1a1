"""The log viewer in Chromium: how soon a long log's end is there, and what a fast one costs in memory."""

from __future__ import annotations

from collections.abc import Iterable

import psutil
from playwright.sync_api import Browser, CDPSession, expect

from tests.bench.bench_portal import BenchPortal, bench_portal
from tests.bench.lines import Line
from tests.browser.visitor import Visitor, chromium, lacks_chromium, visitor
from tests.real.scene import until

LINES = 1_000_000
RATE = 5_000
SECONDS = 40
LONG = f"for number in range({LINES}):\n    print('line', number, 'of a log that nobody may shorten')\n"
FAST = f"""
import time
begun, number = time.monotonic(), 0
while True:
    while number < (time.monotonic() - begun) * {RATE}:
        print("step", number, "loss 0.1234 accuracy 0.9876 and what else a loop says of itself")
        number += 1
    time.sleep(0.02)
"""


def measure() -> Iterable[Line]:
    if lack := lacks_chromium():
        print(f"log viewer: not measured: {lack}", flush=True)
        return
    with bench_portal() as portal, chromium() as browser:
        jobs = {name: _launch(portal, name, text) for name, text in (("long", LONG), ("fast", FAST))}
        portal.client.jobs.wait(jobs["long"], timeout=300)
        link = _sign_in_link(portal)
        with visitor(browser, portal.url) as reader:
            reader.goto(link)
            reader.page.get_by_role("button", name="Sign in").click()
            expect(reader.page.locator(".account-menu")).to_be_visible()
            yield _requests_to_the_end(reader, jobs["long"])
            yield from _memory(browser, reader, portal, jobs["fast"])
        portal.client.jobs.stop(jobs["fast"])
        until(lambda: portal.client.jobs.get(jobs["fast"]).cleaned_up_at, 60, "the job to end")


def _launch(portal: BenchPortal, name: str, text: str) -> str:
    spec = {
        "name": name, "strategy": "single", "code": portal.put_script(name, text), "entry_point": "main.py",
        "roles": {"worker": {"replicas": 1, "cpu": 0.5, "memory": "512Mi"}}, "reclaim_delay": 0, "grace_period": 2,
        "paths": {"data_flag": "", "log_flag": ""},
    }  # fmt: skip
    return portal.client.jobs.launch(spec).id


def _sign_in_link(portal: BenchPortal) -> str:
    me = portal.client.me()
    return str(portal.client.transport.post(f"users/{me['id']}/sign-in-link/")["url"])


def _requests_to_the_end(reader: Visitor, job: str) -> Line:
    asked: list[str] = []
    reader.page.on("request", lambda one: asked.append(one.url) if f"/api/v1/jobs/{job}" in one.url else None)
    reader.goto(f"/jobs/{job}/logs/")
    expect(reader.page.locator(f"a.log-number[href$=':L{LINES}']")).to_be_visible()
    return Line("log viewer: requests until the end of 1,000,000 lines is seen", len(asked), "", at_most=2)


def _memory(browser: Browser, reader: Visitor, portal: BenchPortal, job: str) -> Iterable[Line]:
    page = reader.page
    page.goto("about:blank")
    protocol = reader.context.new_cdp_session(page)
    protocol.send("Performance.enable")
    whole = browser.new_browser_cdp_session()
    before = _renderers(whole)
    reader.goto(f"/jobs/{job}/logs/")
    expect(page.locator("[data-state]")).to_have_text("Live")
    first = _total(reader)
    heaps, grown = [], []
    for _ in range(SECONDS):
        page.wait_for_timeout(1_000)
        heaps.append(_heap(protocol))
        grown.append(_renderers(whole) - before)
    rate = (_total(reader) - first) / SECONDS
    yield Line("log viewer: lines a second that arrive", rate, "line/s", at_least=0.9 * RATE)
    yield Line("... most memory of its scripts meanwhile", max(heaps), "MB", at_most=60)
    note = "proportional set size of all renderers, beyond an empty page"
    yield Line("... most memory of the browser's page meanwhile", max(grown), "MB", note=note)


def _total(reader: Visitor) -> int:
    return int("".join(filter(str.isdigit, reader.page.locator("[data-total]").inner_text())))


def _heap(protocol: CDPSession) -> float:
    found = protocol.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in found if one["name"] == "JSHeapUsedSize") / 1e6


def _renderers(whole: CDPSession) -> float:
    """Memory of the processes that show pages, in MB."""
    pids = [one["id"] for one in whole.send("SystemInfo.getProcessInfo")["processInfo"] if one["type"] == "renderer"]
    return sum(psutil.Process(pid).memory_full_info().pss for pid in pids) / 1e6
