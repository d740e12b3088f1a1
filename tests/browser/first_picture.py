"""`python -m tests.browser.first_picture FILE`: the README's first picture, a job with its TensorBoard and a notebook
that follows it. Three pages of one portal while the digits train, put side by side."""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.visitor import Visitor, chromium, lacks_chromium, visitor
from tests.browser.workbench import STARTS, new_notebook, start_jupyter
from tests.browser.world import World, training, world
from tests.real.scene import until

WIDTH, HEIGHT, GAP, SCALE = 2040, 1320, 24, 2 / 3
"""Of the pages side by side, in their own pixels; and how large a pixel of theirs is in the picture, which itself is
made for screens with one and a half of its pixels each."""
HALF = (WIDTH - 3 * GAP) // 2
LOW = (HEIGHT - 3 * GAP) // 2
CELL = """\
from yardmaster_client import Yardmaster
import matplotlib.pyplot as plt

portal = Yardmaster.from_environment()
job = next(one for one in portal.jobs.list() if one.name == "digits")
job = portal.jobs.watch(job.id, lines=4, until=lambda job: job.progress.get("step", 0) > 1500)
curve = portal.jobs.scalars(job.id, tag="loss")[0]["points"]
plt.figure(figsize=(9, 1.8))
plt.plot([step for step, _, _ in curve], [value for _, _, value in curve]);"""
PAGE = """\
<style>
  body {{ margin: 0; background: #e6eaf0; width: {width}px; height: {height}px; position: relative }}
  img {{ position: absolute; border-radius: 8px; box-shadow: 0 1px 6px #0003 }}
</style>
{pictures}"""


def main(target: Path) -> int:
    """The exit status: 1 where there is no browser."""
    if lack := lacks_chromium():
        print(f"No picture: {lack}.", file=sys.stderr)
        return 1
    with world(trained=False) as full, chromium() as browser:
        _take(full, browser, target)
    print(target)
    return 0


def _take(full: World, browser: Browser, target: Path) -> None:
    job = full.client.jobs.launch(training(full, "digits", "--steps=4000", "--step_sleep=0.04", "--log_every=25"))
    until(lambda: full.client.jobs.get(job.id).phase == "RUNNING", 90, "the training to run")
    with visitor(browser, full.url, device_scale_factor=1.5) as ada:
        ada.forgive("")
        ada.sign_in("ada")
        board, notebook, about = _board(ada, job.id), _notebook(ada), ada.another_tab()
        about.set_viewport_size({"width": HALF, "height": HEIGHT - 2 * GAP})
        about.goto(f"{full.url}/jobs/{job.id}/")
        _run(notebook, CELL)
        board.get_by_role("tab", name="Time Series").click()
        expect(board.locator("scalar-card canvas").first).to_be_visible(timeout=STARTS)
        board.get_by_role("button", name="Close side pane").click()
        board.wait_for_timeout(3000)  # it draws again, in the width that it has now
        right = WIDTH - HALF - GAP
        pictures = [
            _placed(about, GAP, GAP), _placed(board, right, GAP), _placed(notebook, right, 2 * GAP + LOW)
        ]  # fmt: skip
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=1.5 * SCALE)
    page.set_content(PAGE.format(width=WIDTH, height=HEIGHT, pictures="\n".join(pictures)))
    page.screenshot(path=target)


def _board(ada: Visitor, job: str) -> Page:
    board = ada.another_tab()
    board.set_viewport_size({"width": HALF, "height": LOW})
    board.goto(f"{ada.url}/jobs/{job}/")
    board.get_by_role("button", name="TensorBoard").click()
    board.wait_for_url(re.compile(r"/w/[0-9a-f-]+/"), timeout=STARTS)
    return board


def _notebook(ada: Visitor) -> Page:
    start_jupyter(ada)
    page = ada.page
    new_notebook(page)
    page.keyboard.press("Control+b")  # without the files
    page.set_viewport_size({"width": HALF, "height": LOW})
    return page


def _run(page: Page, code: str) -> None:
    page.locator(".jp-NotebookPanel .cm-content").last.click()
    page.keyboard.insert_text(code)
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".jp-RenderedImage img")).to_be_visible(timeout=2 * STARTS)


def _placed(page: Page, left: int, top: int) -> str:
    data = base64.b64encode(page.screenshot()).decode()
    width = page.viewport_size["width"] if page.viewport_size else HALF
    return f'<img style="left: {left}px; top: {top}px; width: {width}px" src="data:image/png;base64,{data}">'


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
