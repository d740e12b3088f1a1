"""A terminal in a running task, in a browser: opened, used, left by the keyboard, ended and opened again; and a failed
task that is held open, from its job's page."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import serious_findings
from tests.browser.visitor import DESK_FIRST, Look, Visitor, visitor
from tests.browser.world import SMALL, World
from tests.real.scene import until

OPENS = 60_000


def launched(world: World, script: str, **changes: object) -> str:
    """The id of a job that runs this script."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.py").write_text(script)
        code = world.client.code.put("looked-at", [Path(folder)]).latest
    assert code is not None
    spec = {
        "name": "looked-at", "strategy": "single", "code": code.id, "entry_point": "main.py", "retries": 0,
        "paths": {"data_flag": "", "log_flag": ""}, "roles": {"worker": dict(SMALL)}, "grace_period": 2, **changes,
    }  # fmt: skip
    return world.client.jobs.launch(spec).id


def reaches(world: World, job: str, state: str) -> None:
    until(lambda: [one["state"] for one in world.client.jobs.tasks(job)] == [state], 90, f"the task to be {state}")


@pytest.fixture(scope="module")
def sleeping(empty_world: World) -> Iterator[str]:
    job = launched(empty_world, "import time; time.sleep(3600)")
    reaches(empty_world, job, "running")
    yield job
    empty_world.client.jobs.stop(job)


def type_line(page: Page, text: str) -> None:
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_a_terminal_is_opened_used_left_and_opened_again(owner: Visitor, sleeping: str):
    page = owner.page
    owner.goto(f"/jobs/{sleeping}/")
    page.get_by_role("link", name="Open terminal").click()
    state, screen = page.locator("[data-state]"), page.locator(".xterm-rows")
    expect(state).to_have_text("Connected", timeout=OPENS)
    type_line(page, "printf '\\033[38;2;10;200;30mgr''een\\033[0m %s\\n' $((20 + 22))")
    expect(screen).to_contain_text("green 42")
    colour = screen.locator("span", has_text="green").last.evaluate("(one) => getComputedStyle(one).color")
    assert colour == "rgb(10, 200, 30)", "styles of single characters are kept under the portal's policy"
    type_line(page, "stty size | tr ' ' by")
    expect(screen).to_contain_text(re.compile(r"[1-9]\d*b[1-9]\d*"))
    shown = re.findall(r"([1-9]\d*)b([1-9]\d*)", screen.inner_text())[-1]
    assert shown != ("24", "80"), "the size of the page, not that of a terminal without one"
    page.keyboard.press("Control+F6")
    expect(page.locator("[data-end]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Open again")).to_be_focused()
    page.keyboard.press("Enter")
    expect(state).to_have_text("Connected", timeout=OPENS)
    type_line(page, "exit")
    expect(state).to_have_text("The shell has ended.")


@pytest.mark.parametrize("look", DESK_FIRST, ids=str)
def test_it_fits_every_look(browser: Browser, empty_world: World, owner_state, sleeping: str, look: Look):
    with visitor(browser, empty_world.url, look, storage_state=owner_state) as one:
        one.goto(f"/jobs/{sleeping}/tasks/worker-0/terminal/")
        expect(one.page.locator("[data-state]")).to_have_text("Connected", timeout=OPENS)
        assert not serious_findings(one.page)
        width = one.page.evaluate("document.documentElement.scrollWidth")
        assert width <= look.width, "nothing is wider than the window"
        one.page.locator("[data-end]").click()
        expect(one.page.get_by_role("button", name="Open again")).to_be_visible()


def test_a_failed_task_is_held_open_and_released(owner: Visitor, empty_world: World):
    job = launched(empty_world, "raise SystemExit(3)", hold_failed=600)
    reaches(empty_world, job, "held")
    page = owner.page
    owner.goto(f"/jobs/{job}/")
    expect(page.locator("#job-status")).to_contain_text("failed (exit code 3) and is held open until")
    expect(page.locator("#job-status")).to_contain_text("keeps its quota")
    expect(page.get_by_role("link", name="Open terminal")).to_be_visible()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("Released worker-0")).to_be_visible()
    assert empty_world.client.jobs.wait(job, timeout=90).phase == "FAILED"
