"""A user who has no password confirms a change in a real browser: by the provider, and back with what was typed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.axe import serious_findings
from tests.browser.visitor import visitor
from tests.real.plain_openid import CLIENT, PlainProvider, plain_provider
from tests.real.portal import CHEAP, LIGHT, RealPortal, real_portal

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def provider() -> Iterator[PlainProvider]:
    with plain_provider() as found:
        yield found


@pytest.fixture(scope="module")
def portal(provider: PlainProvider) -> Iterator[RealPortal]:
    with tempfile.TemporaryDirectory(prefix="yardmaster-confirming-") as folder:
        file = Path(folder) / "oidc.json"
        company = {"issuer": provider.issuer, "client_id": CLIENT, "secret": "secret", "title": "Company"}
        file.write_text(json.dumps({"company": company}))
        with real_portal(Path(folder) / "home", LIGHT, {**CHEAP, "YARDMASTER_OIDC_FILE": str(file)}) as one:
            yield one


def test_a_change_of_address_is_confirmed_at_the_provider_and_done(
    browser: Browser, portal: RealPortal, provider: PlainProvider
):
    with visitor(browser, portal.url) as ada:
        page = ada.page
        ada.goto("/accounts/login/")
        page.get_by_role("link", name="Sign in with Company").click()
        page.wait_for_url(f"{portal.url}/")
        ada.goto("/account/")
        page.get_by_role("textbox", name="E-mail address").fill("ada@example.org")
        page.get_by_role("button", name="Change address").click()
        expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                assert serious_findings(page) == [], (width, scheme)
        page.get_by_role("button", name="Sign in again with Company").press("Enter")
        expect(page.get_by_text("The address was changed.")).to_be_visible()
        expect(page.get_by_role("textbox", name="E-mail address")).to_have_value("ada@example.org")
        assert provider.asked["prompt"] == "login"
        ada.goto("/accounts/password/set/")
        expect(page.get_by_role("heading", name="Set password")).to_be_visible()
        assert serious_findings(page) == []
