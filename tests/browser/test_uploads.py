"""Uploading by hand: drop, pause, a closed tab, a restarted portal, a quota that does not suffice, what is refused."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, Response, Route, expect

from tests.browser.visitor import Visitor
from tests.browser.world import World

MIB = 1 << 20
PARTS = re.compile("/storage/parts/")


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of five parts."""
    file = tmp_path_factory.mktemp("big") / "big.bin"
    file.write_bytes(os.urandom(40 * MIB))
    return file


class Gate:
    """Lets two parts through and holds the others until it is opened; notes which arrived."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.is_open = False
        self.passed: list[str] = []
        self.taken: set[str] = set()
        self.arrived: set[str] = set()
        self.held: list[Route] = []
        page.route(PARTS, self._meet)
        page.on("response", self._note_taken)
        page.on("requestfinished", self._note_arrived)

    def _meet(self, route: Route) -> None:
        if self.is_open or len(self.passed) < 2:
            self.passed.append(part_of(route.request.url))
            route.continue_()
        else:
            self.held.append(route)

    def _note_taken(self, response: Response) -> None:
        if PARTS.search(response.url) and response.ok:
            self.taken.add(part_of(response.url))

    def _note_arrived(self, request: Request) -> None:
        """Only with the end of the answer does the page know of it, too."""
        if (part := part_of(request.url)) in self.taken:
            self.arrived.add(part)

    def start(self) -> None:
        """Begin the upload, until two parts have arrived."""
        with self.page.expect_event("requestfinished", lambda _: len(self.arrived) == 2):
            self.page.get_by_role("button", name="Upload").click()

    def open(self) -> None:
        self.is_open = True
        for route in self.held:
            route.continue_()
        self.held.clear()


def part_of(url: str) -> str:
    """Which part an address is for; what signs it differs from time to time."""
    return url.partition("?")[0]


def chosen(owner: Visitor, kind: str, file: Path, name: str) -> Page:
    owner.goto(f"/{kind}/upload/")
    owner.page.locator("#pick-files").set_input_files(file)
    owner.page.locator("#name").fill(name)
    return owner.page


def test_a_pause_holds_and_going_on_sends_only_the_rest(owner: Visitor, big: Path):
    page = chosen(owner, "datasets", big, "paused")
    gate = Gate(page)
    gate.start()
    page.locator("#pause").click()
    expect(page.locator("#progress-note")).to_contain_text("Paused")
    expect(page.locator("#progress-words")).to_contain_text("40 %")
    gate.open()
    expect(page.locator("#pause")).to_have_text("Resume")
    assert len(gate.arrived) == 2, "a part was sent during the pause"
    page.locator("#pause").click()
    expect(page.get_by_role("heading", name="paused")).to_be_visible(timeout=60_000)
    assert len(gate.arrived) == 5


def test_an_upload_goes_on_after_its_tab_was_closed(owner: Visitor, big: Path):
    page = chosen(owner, "datasets", big, "interrupted")
    first = Gate(page)
    first.start()
    owner.forgive("ERR_INTERNET_DISCONNECTED")
    owner.context.set_offline(True)  # else the browser lets go, with the tab, what the gate holds
    page.close()
    owner.context.set_offline(False)
    page = owner.page = owner.another_tab()
    owner.goto("/datasets/upload/")
    expect(page.get_by_role("heading", name="Unfinished uploads")).to_be_visible()
    page.get_by_role("button", name="Resume").first.click()
    expect(page.locator("#name")).to_have_value("interrupted")
    second = Gate(page)
    second.open()
    page.locator("#pick-files").set_input_files(big)
    page.locator("#start").click()
    expect(page.get_by_role("heading", name="interrupted")).to_be_visible(timeout=60_000)
    assert second.arrived
    assert second.arrived.isdisjoint(first.arrived)


def test_an_upload_outlives_a_restart_of_the_portal(owner: Visitor, empty_world: World, big: Path):
    page = chosen(owner, "datasets", big, "restarted")
    gate = Gate(page)
    gate.start()
    owner.forgive("ERR_|WebSocket|status of 50|net::")
    empty_world.portal.kill("web")
    try:
        gate.open()
        expect(page.locator("#progress-note")).to_contain_text("Retrying automatically")
    finally:
        empty_world.portal.start("web")
    expect(page.get_by_role("heading", name="restarted")).to_be_visible(timeout=60_000)


def test_a_portal_that_is_away_at_the_end_costs_no_byte_sent(owner: Visitor, tmp_path: Path):
    """The page says what to press, and does not promise to try again by itself where it does not."""
    (tmp_path / "late.csv").write_text("a,b\n1,2\n")
    page = chosen(owner, "datasets", tmp_path / "late.csv", "late")
    owner.forgive("ERR_FAILED")
    page.route("**/complete/", lambda route: route.abort())
    page.locator("#start").click()
    expect(page.locator("#trouble")).to_contain_text("The portal does not respond.")
    expect(page.locator("#trouble")).to_contain_text("Try again")
    expect(page.locator("#trouble")).not_to_contain_text("by itself")
    page.unroute("**/complete/")
    gate = Gate(page)
    page.locator("#start").click()
    expect(page.get_by_role("heading", name="late", exact=True)).to_be_visible()
    assert gate.passed == []


def test_a_quota_that_does_not_suffice_is_seen_before_a_byte_is_sent(owner: Visitor, empty_world: World, big: Path):
    client = empty_world.client
    [own] = [one for one in client.namespaces() if one.slug == "ada"]
    limits = client.quota(own.id)["hard"]
    client.transport.put(f"namespaces/{own.id}/quota/", limits | {"storage": 20 * MIB})
    try:
        page = chosen(owner, "datasets", big, "too large")
        gate = Gate(page)
        expect(page.locator("#quota-after.fault")).to_contain_text("more than available")
        owner.forgive("status of 4")
        page.locator("#start").click()
        expect(page.locator("#trouble")).to_contain_text("storage")
        assert gate.passed == gate.held == []
    finally:
        client.transport.put(f"namespaces/{own.id}/quota/", limits)


def test_a_name_that_is_taken_is_said_with_the_way_on(owner: Visitor, tmp_path: Path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    page = chosen(owner, "datasets", tmp_path / "a.csv", "digits")
    page.locator("#start").click()
    expect(page.locator("#name-fault")).to_contain_text("already")
    page.get_by_role("link", name="add a version to it").click()
    expect(page.get_by_role("heading", name="New version")).to_be_visible()
    expect(page.locator("#upload")).to_contain_text("Creates a new version of digits")


def test_a_zip_that_climbs_out_is_refused_and_nothing_is_left(owner: Visitor, empty_world: World, tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "climbs.zip", "w") as archive:
        archive.writestr("../../etc/passwd", "root")
    page = chosen(owner, "code", tmp_path / "climbs.zip", "climbs")
    owner.forgive("status of 4")
    page.locator("#start").click()
    expect(page.locator("#trouble")).to_contain_text("../../etc/passwd")
    expect(page.locator("#files .fault")).to_contain_text("../../etc/passwd")
    owner.goto("/code/upload/")
    expect(page.get_by_role("heading", name="Unfinished uploads")).to_have_count(0)
    assert [one.name for one in empty_world.client.code.list(search="climbs")] == []


def test_leaving_while_something_is_sent_is_asked_about_and_cancelling_takes_it_away(owner: Visitor, big: Path):
    page = chosen(owner, "datasets", big, "left")
    Gate(page).start()
    with page.expect_event("dialog") as asked:
        page.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    page.locator("#cancel").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Cancel upload").click()
    expect(page.locator("#drop")).to_be_visible()
    expect(page.get_by_role("heading", name="Unfinished uploads")).to_have_count(0)
