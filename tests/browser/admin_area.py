"""What tests of the admin area do on its pages: go to a place, look at it, wait for a list, keep a file, and accept an
invitation in a browser of one's own."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import serious_findings
from tests.browser.visitor import Visitor, visitor
from tests.real.portal import RealPortal
from tests.real.scene import until

PASSWORD = "correct horse 9"


def look(one: Visitor, name: str) -> None:
    """Readable to all, on a desk and on a phone; with YARDMASTER_PICTURES also a picture in that folder."""
    for width in (1440, 390):
        one.page.set_viewport_size({"width": width, "height": 900})
        assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
        assert serious_findings(one.page) == [], name
        if folder := os.environ.get("YARDMASTER_PICTURES"):
            one.page.screenshot(path=f"{folder}/{name}-{width}.png", full_page=True)
    one.page.set_viewport_size({"width": 1440, "height": 900})


def administration(page: Page) -> None:
    """To the admin area, from any page."""
    page.locator(".account-menu summary").click()
    page.get_by_role("link", name="Administration").first.click()
    expect(page.get_by_role("heading", name="Administration", level=1)).to_be_visible()


def place(page: Page, name: str) -> None:
    """A place of the admin area, by its link."""
    page.get_by_role("navigation", name="Administration").get_by_role("link", name=name, exact=True).click()


def reloaded(page: Page, text: str | re.Pattern[str]) -> None:
    """The page, loaded again until it shows this: lists do not move by themselves."""

    def shows() -> bool:
        page.reload()
        found = page.locator("main").inner_text()
        return bool(re.search(text, found)) if isinstance(text, re.Pattern) else text in found

    until(shows, 90, f"{text} on {page.url}")


@contextmanager
def accepted(browser: Browser, portal: RealPortal, links: dict[str, str], name: str) -> Iterator[Visitor]:
    """One of the invited, who makes an account behind the link."""
    with visitor(browser, portal.url) as one:
        one.goto("/invitation/" + links[name].rstrip("/").rpartition("/")[2] + "/")
        page = one.page
        expect(page.get_by_text("You join the team speech as a member.")).to_be_visible()
        page.get_by_label("User name").fill(name)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_label("Password again").fill(PASSWORD)
        page.get_by_role("button", name="Create account").click()
        expect(page.locator(".account-menu")).to_be_visible()
        yield one


def downloaded(page: Page, link: str, file: Path) -> list[dict[str, str]]:
    with page.expect_download() as waited:
        page.get_by_role("link", name=link, exact=True).click()
    waited.value.save_as(file)
    with file.open(encoding="utf-8-sig", newline="") as text:
        return list(csv.DictReader(text))
