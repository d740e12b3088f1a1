"""What holds for every page, in light and dark, on a desk and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, StorageState

from tests.browser.addresses import ADDRESSES, Address
from tests.browser.axe import serious_findings
from tests.browser.visitor import DESK, LOOKS, Look, Visitor, visitor
from tests.browser.weight import MOST_BYTES, MOST_REQUESTS, weigh
from tests.browser.world import World

NO_PAGES = {
    "healthz", "readyz",
    # Parts of pages, and what a form is sent to.
    "job_rows", "jobs_bulk", "launch_preview", "launch_manifests", "job_stop_page", "job_retry_page", "token_revoke",
    "session_end", "sessions_end_others", "account_address", "namespace_title", "namespace_quota", "member_add",
    "member_change", "member_remove",
    # Addresses that lead on, and files.
    "address_resend", "address_cancel", "tokens_revoke_all", "account_action", "address_confirm", "audit_csv",
    "audit_jsonl",
    "sign_in_link", "code_version_page", "dataset_version_page", "model_file_page", "model_archive_page",
}  # fmt: skip


@pytest.fixture(params=LOOKS, ids=str, scope="module")
def walker(
    request: pytest.FixtureRequest, browser: Browser, full_world: World, ada_state: StorageState
) -> Iterator[Visitor]:
    """Ada with one look, for all pages in turn."""
    look: Look = request.param
    with visitor(browser, full_world.url, look, storage_state=ada_state) as one:
        yield one


def test_every_address_of_the_portal_is_in_the_list_or_is_no_page():
    from portal.urls import urlpatterns

    names = {pattern.name for pattern in urlpatterns if getattr(pattern, "name", None)}
    known = {address.view for address in ADDRESSES}
    assert names - known - NO_PAGES == set()
    assert names >= NO_PAGES


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda one: one.name)
def test_a_page_is_whole_readable_by_all_and_fits(walker: Visitor, full_world: World, address: Address):
    """Its answer, title and heading; nothing wider than the screen; no fault in the console; nothing for axe."""
    if address.status >= 400:
        walker.forgive(f"status of {address.status}")
    walker.goto(address.of(full_world), status=address.status)
    page = walker.page
    page.wait_for_load_state("networkidle")
    assert re.fullmatch(r".{2,} · Yardmaster|Yardmaster", page.title())
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    assert page.evaluate("document.documentElement.lang") == "en"
    walker.assert_content()
    assert serious_findings(page) == []


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda one: one.name)
def test_a_first_view_is_light(browser: Browser, full_world: World, ada_state: StorageState, address: Address):
    state = None if address.is_open else ada_state
    with visitor(browser, full_world.url, DESK, storage_state=state) as one:
        if address.status >= 400:
            one.forgive(f"status of {address.status}")
        weight = weigh(one, address.of(full_world))
    assert weight.requests <= MOST_REQUESTS, weight.addresses
    assert weight.bytes <= MOST_BYTES, weight.addresses
    assert not [url for url in weight.addresses if not url.startswith((full_world.url, "data:"))]
