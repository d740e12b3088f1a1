"""Sessions of the workbench in a browser: started and opened from the portal, and asked by their own pages."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor
from tests.real.scene import until

STARTS = 90_000
"""Milliseconds within which a session, its page or a kernel is there."""


def start_jupyter(ada: Visitor, size: str = "small") -> None:
    ada.goto("/workbench/")
    card = ada.page.locator("section", has=ada.page.get_by_role("heading", name="Your Jupyter"))
    card.get_by_label("Size").select_option(size)
    card.get_by_role("button", name="Start").click()
    ada.page.wait_for_url(re.compile(r"/w/[0-9a-f-]+/lab"), timeout=STARTS)
    has_lab(ada.page)


def has_lab(page: Page) -> None:
    expect(page.locator(".jp-DirListing-content")).to_be_visible(timeout=STARTS)


def new_notebook(page: Page) -> None:
    page.locator(".jp-LauncherCard[data-category=Notebook]").first.click()
    has_kernel(page, "Untitled")


def has_kernel(page: Page, notebook: str) -> None:
    """The notebook whose name begins so is shown, and has its kernel: without it, JupyterLab runs no cell and says
    nothing. The server is asked, too: what the page says may be of another notebook, which the workspace has restored,
    or from before the kernel."""
    expect(page.get_by_role("tabpanel", name=notebook)).to_be_visible(timeout=STARTS)
    until(lambda: _is_connected(page, notebook), STARTS // 1000, f"the kernel of {notebook}")
    expect(page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible(timeout=STARTS)


def _is_connected(page: Page, notebook: str) -> bool:
    """Whether the notebook's kernel is idle, with a page at its other end."""
    sessions = page.evaluate("async (url) => (await fetch(url)).json()", f"/w/{session_in(page)}/api/sessions")
    kernels = [one["kernel"] for one in sessions if one["name"].startswith(notebook)]
    return any(one["execution_state"] == "idle" and one["connections"] > 0 for one in kernels)


def sign_out_elsewhere(ada: Visitor) -> None:
    """Sign out on the portal, in a tab of its own."""
    portal = ada.another_tab()
    portal.goto(ada.url)
    portal.locator(".account-menu summary").click()
    portal.get_by_role("button", name="Sign out").click()
    shows_sign_in(portal)


def shows_sign_in(page: Page) -> None:
    expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()


def session_in(page: Page) -> str:
    found = re.search(r"/w/([0-9a-f-]{36})/", page.url)
    assert found is not None, page.url
    return found.group(1)


def status(page: Page, address: str, **headers: str) -> int:
    """What the page gets when it asks for an address."""
    look = "async ([address, headers]) => (await fetch(address, { headers })).status"
    return int(page.evaluate(look, [address, headers]))
