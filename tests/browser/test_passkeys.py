"""Passkeys in a real browser, with an authenticator that its debugger makes up: added, used after and instead of the
password, used to confirm, renamed, and not to be removed while one is required."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from tests.browser.axe import serious_findings
from tests.browser.visitor import PASSWORD, Visitor, visitor
from tests.real.portal import CHEAP, LIGHT, RealPortal, real_portal

PLATFORM = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip
SIMPLE_KEY = {
    "protocol": "u2f", "transport": "usb", "hasResidentKey": False, "hasUserVerification": False,
    "automaticPresenceSimulation": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def portal() -> Iterator[RealPortal]:
    """At `localhost`, where browsers offer passkeys, and with a second step required of administrators."""
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-passkeys-") as folder,
        real_portal(
            Path(folder), LIGHT, {**CHEAP, "YARDMASTER_REQUIRE_SECOND_FACTOR": "administrators"}, host="localhost"
        ) as one,
    ):
        one.token_of("ada", is_staff=True)
        one.token_of("bob")
        one.token_of("eve")
        yield one


def authenticator(page: Page, options: dict[str, object]) -> CDPSession:
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session


def confirm(page: Page) -> None:
    expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def add(one: Visitor, name: str, *, alone: bool = True) -> None:
    """From the list of passkeys, as a user who has just confirmed it."""
    one.page.get_by_role("link", name="Add passkey").click()
    if one.page.get_by_role("heading", name="Confirm that it is you").is_visible():
        confirm(one.page)
    one.page.get_by_label("Name, for you to recognise it").fill(name)
    one.page.get_by_label("Also sign in with it alone").set_checked(alone)
    look(one, "add")
    one.page.get_by_role("button", name="Add passkey").click()


def look(one: Visitor, name: str) -> None:
    """Readable to all, and a picture of it, at the width of a phone."""
    one.page.set_viewport_size({"width": 390, "height": 844})
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert serious_findings(one.page) == [], name
    one.page.set_viewport_size({"width": 1440, "height": 900})


def test_an_administrator_fulfils_the_required_second_step_with_a_passkey(browser: Browser, portal: RealPortal):
    with visitor(browser, portal.url) as ada:
        authenticator(ada.page, PLATFORM)
        ada.goto("/accounts/login/")
        ada.give_password("ada")
        expect(ada.page.get_by_text("This portal requires a second step.")).to_be_visible()
        add(ada, "Laptop")
        expect(ada.page.get_by_role("heading", name="Recovery codes")).to_be_visible()
        ada.goto("/jobs/")

        ada.goto("/accounts/2fa/webauthn/")
        expect(ada.page.get_by_role("strong").filter(has_text="Laptop")).to_be_visible()
        expect(ada.page.get_by_text("signs in alone")).to_be_visible()
        expect(ada.page.get_by_text("never used")).to_be_visible()
        look(ada, "list")
        ada.page.get_by_role("link", name="Rename Laptop").click()
        look(ada, "rename")
        ada.page.get_by_label("Name", exact=True).fill("Home: laptop")
        ada.page.get_by_role("button", name="Save").click()
        expect(ada.page.get_by_role("strong").filter(has_text="Home: laptop")).to_be_visible()

        ada.page.get_by_role("link", name="Remove Home: laptop").click()
        expect(ada.page.get_by_text("is your only one")).to_be_visible()
        expect(ada.page.get_by_role("button", name="Remove passkey")).to_have_count(0)
        look(ada, "remove")

        ada.sign_out()
        ada.page.get_by_role("button", name="Use a passkey").click()
        expect(ada.page.locator(".account-menu")).to_be_visible()
        ada.goto("/account/sessions/")
        expect(ada.page.get_by_text("passkey").first).to_be_visible()
        ada.goto("/jobs/")

        ada.sign_out()
        ada.goto("/accounts/login/?next=/datasets/")
        ada.give_password("ada")
        expect(ada.page.get_by_role("button", name="Use your passkey")).to_be_visible()
        look(ada, "second step")
        ada.page.get_by_role("button", name="Use your passkey").click()
        expect(ada.page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()

        ada.goto("/accounts/2fa/recovery-codes/generate/")
        ada.page.get_by_role("link", name="Use a passkey").click()
        ada.page.get_by_role("button", name="Use your passkey").click()
        expect(ada.page.get_by_role("heading", name="New recovery codes")).to_be_visible()
        ada.goto("/accounts/2fa/webauthn/")
        expect(ada.page.get_by_text("last used")).to_be_visible()


def test_a_simple_key_is_a_second_step_alone_and_is_removed(browser: Browser, portal: RealPortal):
    with visitor(browser, portal.url) as bob:
        authenticator(bob.page, SIMPLE_KEY)
        bob.sign_in("bob")
        bob.goto("/accounts/2fa/webauthn/")
        add(bob, "Key ring", alone=False)
        expect(bob.page.get_by_role("heading", name="Recovery codes")).to_be_visible()
        bob.sign_out()
        bob.goto("/accounts/login/")
        bob.give_password("bob")
        bob.page.get_by_role("button", name="Use your passkey").click()
        expect(bob.page.locator(".account-menu")).to_be_visible()

        bob.goto("/accounts/2fa/webauthn/")
        expect(bob.page.get_by_text("second step", exact=True)).to_be_visible()
        bob.page.get_by_role("link", name="Remove Key ring").click()
        confirm(bob.page)
        bob.page.get_by_role("button", name="Remove passkey").click()
        expect(bob.page.get_by_text("No passkeys yet.")).to_be_visible()
        bob.sign_out()
        bob.sign_in("bob")


def test_who_has_no_passkey_here_is_told(browser: Browser, portal: RealPortal):
    with visitor(browser, portal.url) as eve:
        session = authenticator(eve.page, SIMPLE_KEY)
        eve.goto("/accounts/login/")
        session.send("WebAuthn.disable")
        eve.page.evaluate(
            "() => { navigator.credentials.get = async () => { throw new DOMException('none', 'NotAllowedError') } }"
        )
        eve.page.get_by_role("button", name="Use a passkey").click()
        expect(eve.page.get_by_text("there is no matching passkey here")).to_be_visible()
        expect(eve.page.get_by_role("button", name="Use a passkey")).to_be_enabled()
