"""An administrator lets a colleague in, locks them out, and removes them: the way by hand, from the invitation on."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.visitor import Visitor, visitor
from tests.browser.world import World

pytestmark = pytest.mark.long

PASSWORD = "correct horse 9"


def test_a_colleague_is_invited_locked_and_removed_by_name(browser: Browser, empty_world: World, owner: Visitor):
    owner.goto("/admin/invitations/")
    owner.page.get_by_label("Number of uses").fill("2")
    owner.page.get_by_role("button", name="Create invitations").click()
    link = owner.page.locator(".token-made code").inner_text()
    assert "/invitation/" in link

    with visitor(browser, empty_world.url) as grace:
        grace.goto("/invitation/" + link.rstrip("/").rpartition("/")[2] + "/")
        grace.page.get_by_label("User name").fill("grace")
        grace.page.get_by_label("Password", exact=True).fill(PASSWORD)
        grace.page.get_by_label("Password again").fill(PASSWORD)
        grace.page.get_by_role("button", name="Create account").click()
        expect(grace.page.locator(".account-menu")).to_be_visible()

        owner.goto("/admin/users/?search=gra")
        owner.page.get_by_role("link", name="grace").click()
        owner.page.get_by_text("Lock", exact=True).last.click()
        owner.page.get_by_role("button", name="Lock user", exact=True).click()
        expect(owner.page.get_by_text("grace is locked.")).to_be_visible()
        grace.forgive("status of 4|WebSocket")
        grace.page.goto(f"{empty_world.url}/account/")
        expect(grace.page.get_by_role("heading", name="Sign in")).to_be_visible()

    owner.page.get_by_role("link", name=re.compile("Remove user")).click()
    owner.page.get_by_label("Delete everything permanently").check()
    owner.page.get_by_label("Type grace to confirm").fill("Grace")
    owner.page.get_by_role("button", name="Remove user").click()
    expect(owner.page.locator(".invalid-feedback")).to_contain_text("not the name")
    expect(owner.page.get_by_label("Delete everything permanently")).to_be_checked()
    owner.page.get_by_label("Type grace to confirm").fill("grace")
    owner.page.get_by_role("button", name="Remove user").click()
    expect(owner.page.get_by_role("heading", name="grace", level=1)).to_be_visible()
    expect(owner.page.get_by_text("Everything was removed.")).to_be_visible(timeout=60_000)
    owner.goto("/admin/users/?search=grace")
    expect(owner.page.get_by_role("heading", name="No users match")).to_be_visible()
