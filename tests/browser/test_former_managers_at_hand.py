"""A manager finds what a former one left, and revokes it; and searches the audit for that."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.axe import serious_findings
from tests.browser.visitor import Visitor, visitor
from tests.real.portal import CHEAP, LIGHT, RealPortal, real_portal

pytestmark = pytest.mark.long

_PREPARE = """
import django
django.setup()
from datetime import timedelta
from apps.accounts.models import User
from apps.namespaces.models import Role
from apps.namespaces.service_accounts import service_account_create, service_token_create
from apps.namespaces.services import member_add, member_change, team_create
from apps.webhooks.services import webhook_create
ada, bob = User.objects.get(username="ada"), User.objects.get(username="bob")
team = team_create(slug="vision", title="", manager=ada, actor=ada)
member_add(namespace=team, user=bob, role=Role.MANAGER, actor=ada)
webhook_create(namespace=team, actor=bob, url="https://ci.example.org/hook", events=["job.failed"])
account = service_account_create(namespace=team, name="nightly", role=Role.MEMBER, description="", actor=bob)
service_token_create(account=account, name="build", scopes=["jobs"], expires_in=timedelta(days=9), actor=bob)
member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
print(team.pk)
"""


@pytest.fixture(scope="module")
def portal() -> Iterator[RealPortal]:
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-former-") as folder,
        real_portal(Path(folder), LIGHT, CHEAP) as one,
    ):
        one.token_of("ada")
        one.token_of("bob")
        yield one


def look(one: Visitor, name: str) -> None:
    """Readable to all, on a desk and on a phone; with YARDMASTER_PICTURES also a picture in that folder."""
    for width in (1440, 390):
        one.page.set_viewport_size({"width": width, "height": 900})
        assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
        assert serious_findings(one.page) == [], name
        if folder := os.environ.get("YARDMASTER_PICTURES"):
            one.page.screenshot(path=f"{folder}/{name}-{width}.png", full_page=True)
    one.page.set_viewport_size({"width": 1440, "height": 900})


def test_what_a_former_manager_left_is_found_and_revoked(browser: Browser, portal: RealPortal):
    team = portal.script(_PREPARE).splitlines()[-1]
    with visitor(browser, portal.url) as ada:
        ada.sign_in("ada")
        ada.goto(f"/namespaces/{team}/")
        ada.page.get_by_role("link", name="Revoke or keep it").click()
        expect(ada.page.get_by_role("heading", name="Made by bob, who is no longer a manager")).to_be_visible()
        expect(ada.page.get_by_text("ci.example.org").first).to_be_visible()
        look(ada, "former")
        ada.page.get_by_role("button", name="Revoke all of bob").click()
        expect(ada.page.get_by_text("1 token revoked, 1 webhook switched off.")).to_be_visible()
        expect(ada.page.get_by_text("Nothing to review")).to_be_visible()
        ada.goto(f"/namespaces/{team}/")
        ada.page.get_by_role("link", name="Show audit").click()
        ada.page.get_by_label("Action").select_option("token.")
        ada.page.get_by_label("Words in the details").fill("build")
        ada.page.get_by_role("button", name="Filter").click()
        expect(ada.page.locator("main .list-group-item")).to_have_count(1)
        look(ada, "audit")
