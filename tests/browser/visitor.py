"""A person in front of a browser, and all that went wrong in it.

A console error, an uncaught exception, a broken Content-Security-Policy, a request that the server failed at: each is
kept, and `assert_content` fails on it. What a test causes on purpose (a cut network) it forgives by name.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    StorageState,
    expect,
    sync_playwright,
)

PASSWORD = "correct horse battery"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The first is Chromium without the windows of its own, which take a third of the processor time of these tests."""
PATIENCE = 30_000.0
expect.set_options(timeout=15_000)
Scheme = Literal["light", "dark"]


@dataclass(frozen=True)
class Look:
    """How a page is looked at: a width in pixels, and light or dark."""

    width: int
    scheme: Scheme

    @property
    def height(self) -> int:
        return 844 if self.width < 600 else 900

    def __str__(self) -> str:
        return f"{self.scheme}-{self.width}"


DESK = Look(1440, "light")
PHONE = Look(390, "light")
LOOKS = (DESK, Look(1440, "dark"), PHONE, Look(390, "dark"))
OPPOSITES = (LOOKS[0], LOOKS[3])
"""They differ in width and in scheme."""
DESK_FIRST = (OPPOSITES[0], pytest.param(OPPOSITES[1], marks=pytest.mark.long))
"""Parameters of tests that take longer than a look: what a page looks like is seen in `test_every_page`."""


def chromium_path() -> str | None:
    """Debian's Chromium (without windows where it is installed), another Chrome, or what YARDMASTER_CHROMIUM names;
    None where there is none."""
    named = os.environ.get("YARDMASTER_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


def lacks_chromium() -> str:
    """Why no browser can be started here, in one line; empty where one can be tried."""
    path = chromium_path()
    if path is None:
        return "no Chromium (Debian: apt install chromium)"
    return "" if shutil.which(path) else f"no Chromium: YARDMASTER_CHROMIUM={path} is not a program"


class NoChromium(Exception):
    """There is no browser on this machine; `lacks_chromium` says why."""


@contextmanager
def chromium(*extra: str) -> Iterator[Browser]:
    """A browser without a window. Its sandbox does not work for root; it sees only our own pages.
    Raises `NoChromium`."""
    if lack := lacks_chromium():
        raise NoChromium(lack)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        flags = [*sandbox, "--disable-dev-shm-usage", *extra]
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=flags)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visitor:
    """One person: a browser context of their own (cookies, storage, clipboard) with a page open."""

    url: str
    context: BrowserContext
    page: Page
    faults: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        """Keep what goes wrong on this page."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self.faults.append(f"{response.status} from {response.url}")

    def forgive(self, pattern: str) -> None:
        """What fits the pattern was caused on purpose."""
        self.forgiven.append(pattern)

    def assert_content(self) -> None:
        """Nothing went wrong so far."""
        left = [one for one in self.faults if not any(re.search(pattern, one) for pattern in self.forgiven)]
        assert not left, "\n".join(left)

    # --- Going about --------------------------------------------------------------------------------------------------

    def goto(self, path: str, status: int = 200) -> None:
        """Open an address of the portal, which must answer with this status."""
        response = self.page.goto(path if path.startswith("http") else self.url + path)
        assert response is not None
        assert response.status == status, f"{response.status} for {path}"

    def sign_in(self, username: str, password: str = PASSWORD) -> None:
        self.goto("/accounts/login/")
        self.give_password(username, password)
        expect(self.page.locator(".account-menu")).to_be_visible()

    def give_password(self, username: str, password: str = PASSWORD) -> None:
        """Fill in and send the form for signing in that is open. Where it leads is not waited for."""
        self.page.get_by_label("User name or e-mail address").fill(username)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()

    def sign_out(self) -> None:
        self.page.locator(".account-menu summary").click()
        self.page.get_by_role("button", name="Sign out").click()
        expect(self.page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()

    def darken(self, *, dark: bool = True) -> None:
        """Change what the person prefers, light or dark, with the page open; pages follow at once."""
        scheme: Scheme = "dark" if dark else "light"
        self.page.emulate_media(color_scheme=scheme)
        self.page.wait_for_function("(scheme) => document.documentElement.dataset.bsTheme === scheme", arg=scheme)

    def another_tab(self) -> Page:
        page = self.context.new_page()
        self.listen(page)
        return page

    def drop(self, selector: str, files: list[Path], root: Path) -> None:
        """Drag these files of the folder `root` onto an element and let them go."""
        contents = [{"path": str(one.relative_to(root)), "base64": _base64(one)} for one in files]
        self.page.locator(selector).evaluate(_DROP, contents)


@contextmanager
def visitor(browser: Browser, url: str, look: Look = DESK, **options: Any) -> Iterator[Visitor]:
    """A new person without cookies. On the way out nothing may have gone wrong."""
    size = {"width": look.width, "height": look.height}
    context = browser.new_context(
        viewport=size, color_scheme=look.scheme, reduced_motion="reduce", has_touch=look.width < 600, locale="en-GB",
        permissions=["clipboard-read", "clipboard-write"], **options,
    )  # fmt: skip
    context.set_default_timeout(PATIENCE)
    try:
        page = context.new_page()
        one = Visitor(url, context, page)
        one.listen(page)
        yield one
        one.assert_content()
    finally:
        context.close()


def cookies_of(browser: Browser, url: str, username: str) -> StorageState:
    """What a browser holds once this person has signed in: only ten may do that in a minute."""
    with visitor(browser, url) as one:
        one.sign_in(username)
        return one.context.storage_state()


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


# A drop is an event with files in it, which the browser lets a page's own script make.
_DROP = """(element, contents) => {
    const transfer = new DataTransfer();
    for (const { path, base64 } of contents) {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        transfer.items.add(new File([bytes], path.split("/").pop()));
    }
    for (const type of ["dragenter", "dragover", "drop"]) {
        element.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: transfer }));
    }
}"""


@contextmanager
def fields_answered(page: Page) -> Iterator[None]:
    """Around what makes the launch page ask for its fields: until they have come, and can be used."""
    before = page.locator("#f-strategy").element_handle()
    yield
    page.wait_for_function("one => !one.isConnected", arg=before)
    expect(page.locator("#launch-fields.htmx-settling")).to_have_count(0)
