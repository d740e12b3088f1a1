"""Ways into the portal: a link that signs in once, as `make demo` prints it, and a password; and out of it."""

from __future__ import annotations

import json

from playwright.sync_api import Browser, expect

from tests.browser.visitor import visitor
from tests.browser.world import World


def fresh_link(world: World) -> str:
    return str(json.loads(world.portal.manage("access", "--username", "ada").splitlines()[-1])["link"])


def test_a_link_signs_in_once(browser: Browser, empty_world: World):
    link = fresh_link(empty_world)
    with visitor(browser, empty_world.url) as ada:
        sent: list[str] = []
        ada.page.on("request", lambda one: sent.append(one.headers.get("referer", "")))
        ada.goto(link)
        ada.page.get_by_role("button", name="Sign in as ada").click()
        expect(ada.page.locator(".account-menu")).to_be_visible()
        assert not any("/sign-in/" in referrer for referrer in sent)
    with visitor(browser, empty_world.url) as thief:
        thief.forgive("status of 4")
        thief.page.goto(link)
        expect(thief.page.get_by_role("heading", level=1)).to_contain_text("no longer valid")


def test_a_wrong_password_says_so_and_keeps_the_name(browser: Browser, empty_world: World):
    with visitor(browser, empty_world.url) as ada:
        ada.goto("/accounts/login/")
        ada.page.get_by_label("User name or e-mail address").fill("ada")
        ada.page.get_by_label("Password").fill("guess")
        ada.page.get_by_role("button", name="Sign in").click()
        expect(ada.page.locator(".alert-danger, .invalid-feedback").first).to_be_visible()
        expect(ada.page.get_by_label("User name or e-mail address")).to_have_value("ada")


def test_a_page_that_was_asked_for_is_there_after_signing_in(browser: Browser, empty_world: World):
    with visitor(browser, empty_world.url) as ada:
        ada.goto("/datasets/?search=dig")
        ada.give_password("ada")
        expect(ada.page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()
        expect(ada.page.get_by_label("Search by name")).to_have_value("dig")


def test_going_back_after_signing_out_shows_nothing_that_is_secret(browser: Browser, empty_world: World):
    with visitor(browser, empty_world.url) as ada:
        ada.goto("/account/tokens/")
        ada.give_password("ada")
        expect(ada.page.get_by_role("heading", name="Tokens", exact=True)).to_be_visible()
        ada.sign_out()
        ada.page.go_back()
        expect(ada.page.get_by_role("heading", name="Sign in")).to_be_visible()
