"""Uploading by hand: drop, pause, a closed tab, a restarted portal, a quota that does not suffice, what is refused."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, expect

from tests.browser.visitor import Visitor, visitor
from tests.browser.world import World

MIB = 1 << 20


@pytest.fixture(scope="module")
def state(browser: Browser, empty_world: World) -> StorageState:
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        return ada.context.storage_state()


@pytest.fixture
def sender(browser: Browser, empty_world: World, state: StorageState) -> Iterator[Visitor]:
    with visitor(browser, empty_world.url, storage_state=state) as one:
        yield one


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of several parts."""
    file = tmp_path_factory.mktemp("big") / "big.bin"
    file.write_bytes(os.urandom(40 * MIB))
    return file


class Gate:
    """Lets parts through one after another until it is shut; counts what went through."""

    def __init__(self, page: Page) -> None:
        self.is_open = True
        self.held: list[Route] = []
        self.passed: list[str] = []
        page.route(re.compile(r"/storage/"), self._meet)

    def _meet(self, route: Route) -> None:
        if route.request.method != "PUT":
            route.continue_()
        elif self.is_open and len(self.passed) < 2:
            self.passed.append(route.request.url)
            route.continue_()
        else:
            self.held.append(route)

    def open_wide(self, page: Page) -> None:
        page.unroute(re.compile(r"/storage/"))
        for route in self.held:
            route.continue_()
        self.held.clear()


def chosen(sender: Visitor, kind: str, file: Path, name: str) -> Page:
    sender.goto(f"/{kind}/upload/")
    sender.page.locator("#pick-files").set_input_files(file)
    sender.page.locator("#name").fill(name)
    return sender.page


def test_a_pause_holds_and_going_on_ends_it(sender: Visitor, big: Path):
    page = chosen(sender, "datasets", big, "paused")
    gate = Gate(page)
    page.get_by_role("button", name="Upload").click()
    page.locator("#pause").click()
    expect(page.locator("#progress-note")).to_contain_text("Paused")
    gate.held.clear()
    page.unroute(re.compile(r"/storage/"))
    page.locator("#pause").click()
    expect(page.get_by_role("heading", name="paused")).to_be_visible()


def test_an_upload_goes_on_after_its_tab_was_closed(sender: Visitor, big: Path):
    page = chosen(sender, "datasets", big, "broken off")
    Gate(page)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#progress-words")).not_to_have_text(re.compile("^0 %"))
    sender.page.close(run_before_unload=False)
    page = sender.page = sender.another_tab()
    sender.goto("/datasets/upload/")
    expect(page.get_by_role("heading", name="Not finished yet")).to_be_visible()
    page.get_by_role("button", name="Go on").first.click()
    expect(page.locator("#name")).to_have_value("broken off")
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.url) if one.method == "PUT" and "/storage/" in one.url else None)
    page.locator("#pick-files").set_input_files(big)
    page.locator("#start").click()
    expect(page.get_by_role("heading", name="broken off")).to_be_visible()
    assert 0 < len(sent) < 40 * MIB // (8 * MIB) + 1


def test_an_upload_outlives_a_restart_of_the_portal(sender: Visitor, empty_world: World, big: Path):
    page = chosen(sender, "datasets", big, "restarted")
    gate = Gate(page)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#progress-words")).not_to_have_text(re.compile("^0 %"))
    sender.forgive("ERR_|WebSocket|status of 50|net::")
    empty_world.portal.kill("web")
    gate.open_wide(page)
    expect(page.locator("#progress-note")).to_contain_text("tried again by itself")
    empty_world.portal.start("web")
    expect(page.get_by_role("heading", name="restarted")).to_be_visible(timeout=60_000)


def test_a_quota_that_does_not_suffice_is_seen_before_a_byte_is_sent(sender: Visitor, empty_world: World, big: Path):
    namespace = (
        empty_world.client.me()["namespace"]["id"]
        if "namespace" in empty_world.client.me()
        else next(empty_world.client.namespaces()).id
    )
    empty_world.client.transport.patch(f"namespaces/{namespace}/quota/", {"storage": 20 * MIB})
    try:
        page = chosen(sender, "datasets", big, "too large")
        expect(page.locator("#quota-after")).to_contain_text(re.compile("more than|does not fit|over", re.I))
        sender.forgive("status of 4")
        if page.locator("#start").is_enabled():
            page.locator("#start").click()
            expect(page.locator("#trouble")).to_contain_text(re.compile("quota|storage", re.I))
    finally:
        empty_world.client.transport.patch(f"namespaces/{namespace}/quota/", {"storage": None})


def test_a_name_that_is_taken_is_said_with_the_way_on(sender: Visitor, tmp_path: Path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    page = chosen(sender, "datasets", tmp_path / "a.csv", "digits")
    page.locator("#start").click()
    expect(page.locator("#name-fault")).to_contain_text("already")
    expect(page.get_by_role("link", name="add a version to it")).to_be_visible()


def test_a_zip_that_climbs_out_is_refused_and_nothing_is_left(sender: Visitor, tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "climbs.zip", "w") as archive:
        archive.writestr("../../etc/passwd", "root")
    page = chosen(sender, "code", tmp_path / "climbs.zip", "climbs")
    sender.forgive("status of 4")
    page.locator("#start").click()
    expect(page.locator("#trouble")).to_be_visible()
    expect(page.locator("#trouble")).to_contain_text(re.compile(r"\.\./|path", re.I))


def test_leaving_while_something_is_sent_is_asked_about(sender: Visitor, big: Path):
    page = chosen(sender, "datasets", big, "left")
    Gate(page)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#pause")).to_be_visible()
    asked: list[str] = []

    def stay(dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.close(run_before_unload=True)
    page.wait_for_timeout(500)
    assert asked == ["beforeunload"]
    expect(page.locator("#pause")).to_be_visible()
