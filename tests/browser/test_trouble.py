"""The pages that say what is wrong: not allowed, not found, failed, away; and what is left when nobody answers."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, StorageState, expect

from tests.browser.axe import serious_findings
from tests.browser.visitor import OPPOSITES, Look, Visitor, visitor
from tests.browser.world import World
from tests.real.portal import CHEAP, LIGHT, real_portal
from tests.real.postgres import running_cluster

_A_BUG = """
import django
django.setup()
from apps.api.outside import server_error
from django.test import RequestFactory
print(server_error(RequestFactory().get("/jobs/")).content.decode())
"""


def test_a_form_from_an_old_session_is_refused_in_words_and_loses_nothing(ada: Visitor, full_world: World):
    ada.goto("/account/")
    ada.context.clear_cookies(name="yardmaster_csrf")
    ada.forgive("status of 403")
    ada.page.locator("[name=first_name]").fill("Augusta")
    ada.page.get_by_role("button", name="Save").first.click()
    expect(ada.page.get_by_role("heading", level=1)).to_contain_text("form has expired")
    assert serious_findings(ada.page) == []
    ada.page.get_by_role("button", name="Back").click()
    expect(ada.page.locator("[name=first_name]")).to_have_value("Augusta")


def test_a_stranger_finds_nothing_and_is_told_what_it_may_be(browser: Browser, full_world: World):
    with visitor(browser, full_world.url) as bob:
        bob.sign_in("bob")
        bob.forgive("status of 404")
        for path in (
            "/jobs/{trained}/",
            "/jobs/{trained}/logs/",
            "/datasets/{dataset}/",
            "/code/{code}/",
            "/models/{model}/",
        ):
            bob.goto(path.format(**full_world.ids), status=404)
            expect(bob.page.locator(".problem")).to_contain_text("namespace that you are not a member of")


def test_a_viewer_of_a_team_sees_what_may_not_be_done_there(browser: Browser, full_world: World):
    with visitor(browser, full_world.url) as bob:
        bob.sign_in("bob")
        bob.goto("/datasets/upload/?namespace=vision")
        expect(bob.page.get_by_text("You have read-only access")).to_be_visible()


@pytest.mark.parametrize("look", OPPOSITES, ids=str)
def test_a_bug_has_a_page_that_says_what_to_do(ada: Visitor, full_world: World, look: Look):
    page = full_world.portal.script(_A_BUG)

    def fail(route: Route) -> None:
        route.fulfill(status=500, body=page, content_type="text/html")

    ada.page.route("**/jobs/", fail)
    ada.forgive("500")
    ada.goto("/jobs/", status=500)
    expect(ada.page.get_by_role("heading", level=1)).to_contain_text("An internal error occurred")
    assert serious_findings(ada.page) == []
    ada.page.unroute("**/jobs/")
    ada.page.get_by_role("link", name="Try again").click()
    expect(ada.page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()


@pytest.mark.postgres
@pytest.mark.long
def test_a_portal_without_its_database_says_so_and_comes_back_by_itself(browser: Browser):
    with (
        running_cluster() as cluster,
        tempfile.TemporaryDirectory(prefix="yardmaster-browser-") as home,
    ):
        cluster.create_migrated("portal")
        settings = {**CHEAP, "YARDMASTER_DATABASE_URL": cluster.url("portal")}
        with real_portal(Path(home), LIGHT, settings) as portal, contextlib.ExitStack() as both:
            portal.token_of("ada", is_staff=True)
            desk, phone = (both.enter_context(visitor(browser, portal.url, look)) for look in OPPOSITES)
            for ada in (desk, phone):
                ada.sign_in("ada")
            cluster.stop()
            for ada in (desk, phone):
                ada.forgive("503|WebSocket connection to .* failed")
                ada.goto("/datasets/", status=503)
                expect(ada.page.get_by_role("heading", level=1)).to_contain_text("temporarily unavailable")
                expect(ada.page.get_by_text("This page reloads automatically")).to_be_visible()
                assert serious_findings(ada.page) == []
            cluster.start()
            for ada in (desk, phone):
                expect(ada.page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()


def test_an_action_that_fails_is_told_in_the_corner_and_the_page_stays(ada: Visitor, full_world: World):
    """A part of the page is asked for while the portal is away."""
    ada.goto("/jobs/")
    ada.forgive("ERR_|htmx:")
    ada.page.route("**/jobs/?**", lambda route: route.abort())
    ada.page.locator("#job-search").fill("digits")
    expect(ada.page.locator(".toast-note").last).to_be_visible()
    expect(ada.page.locator(".job-row").first).to_be_visible()
    ada.page.unroute("**/jobs/?**")
    ada.page.locator("#job-search").fill("digits, s")
    expect(ada.page.locator(".job-row")).to_have_count(1)
    expect(ada.page).to_have_url(re.compile("search=digits"))


def test_a_link_to_a_line_leads_there_after_signing_in(browser: Browser, full_world: World, ada_state: StorageState):
    with visitor(browser, full_world.url) as one:
        one.goto(f"/jobs/{full_world.ids['logged']}/logs/?task=worker-0#worker-0:L3")
        one.give_password("ada")
        expect(one.page.locator(".log-row.log-chosen")).to_contain_text("ERROR")
