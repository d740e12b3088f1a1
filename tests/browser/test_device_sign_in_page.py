"""A program is signed in by its code, in a browser: the page is whole in every look, and both answers count."""

from __future__ import annotations

import httpx2
import pytest
from playwright.sync_api import Browser, StorageState, expect

from tests.browser.axe import COLORS, serious_findings
from tests.browser.visitor import DESK, PHONE, Look, visitor
from tests.browser.world import World

pytestmark = pytest.mark.long

PATIENCE = 60


def ask(world: World) -> dict[str, str]:
    name = f"yardmaster on {'laptop' * 12}"
    answer = httpx2.post(f"{world.url}/api/v1/auth/device/", json={"name": name}, timeout=PATIENCE)
    return dict(answer.raise_for_status().json())


def collected(world: World, asked: dict[str, str]) -> httpx2.Response:
    code = {"device_code": asked["device_code"]}
    return httpx2.post(f"{world.url}/api/v1/auth/device/token/", json=code, timeout=PATIENCE)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=str)
@pytest.mark.parametrize(("button", "heading", "status"), [("Confirm", "Signed in", 200), ("Refuse", "Refused", 400)])
def test_a_code_that_is_typed_leads_to_who_asks(
    browser: Browser, empty_world: World, owner_state: StorageState, size: Look, button: str, heading: str, status: int
):
    asked = ask(empty_world)
    with visitor(browser, empty_world.url, size, storage_state=owner_state) as one:
        one.goto("/device/")
        one.page.get_by_role("textbox", name="Code", exact=True).fill(asked["user_code"].lower())
        one.page.get_by_role("button", name="Continue").click()
        expect(one.page.get_by_role("heading", name="Sign in this program?")).to_be_visible()
        expect(one.page.get_by_text(asked["user_code"])).to_be_visible()
        assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert serious_findings(one.page) == []
        one.darken()
        assert serious_findings(one.page, COLORS) == []
        one.page.get_by_role("button", name=button).click()
        expect(one.page.get_by_role("heading", name=heading)).to_be_visible()
        assert serious_findings(one.page, COLORS) == []
    assert collected(empty_world, asked).status_code == status
