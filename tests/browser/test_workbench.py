"""The workbench as users meet it: a JupyterLab that runs cells, a TensorBoard beside a training, and their end with the
sign-in. Real programs, on the second origin."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from statistics import median

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visitor import visitor
from tests.browser.workbench import (
    STARTS,
    has_kernel,
    new_notebook,
    session_in,
    sign_out_elsewhere,
    start_jupyter,
    status,
)
from tests.browser.world import World, training
from tests.real.scene import until

pytestmark = [pytest.mark.tensorflow, pytest.mark.linux, pytest.mark.timeout(400)]
TRAINS = 240_000
LIVE = 10.0
"""Seconds within which an open TensorBoard shows a step."""
CARD = "scalar-card:has([title='accuracy'])"


@pytest.fixture(autouse=True)
def _all_stopped(empty_world: World) -> Iterator[None]:
    yield
    transport = empty_world.client.transport
    for one in list(transport.pages("sessions/")):
        transport.post(f"sessions/{one['id']}/stop/", {})


@pytest.mark.long
def test_a_notebook_survives_a_restart_of_the_portal_and_ends_with_the_sign_in(
    browser: Browser, empty_world: World
) -> None:
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        start_jupyter(ada)
        page = ada.page
        new_notebook(page)
        _run(page, "import yardmaster_client as y; x = 41; x")
        assert _run(page, "y.Yardmaster.from_environment().me()['username']") == "'ada'"
        ada.forgive("")  # JupyterLab reports each connection that the restart breaks
        # If the portal is away for long enough, JupyterLab says so in a dialog.
        away = page.get_by_role("dialog", name="Server Connection Error")
        page.add_locator_handler(away, lambda dialog: dialog.get_by_role("button", name="Close").click())
        empty_world.portal.kill("web", signal.SIGTERM)
        empty_world.portal.start("web")
        has_kernel(page, "Untitled")  # keys that are typed before it may go into the dialog
        assert _run(page, "x + 1") == "42"
        origin = page.url.partition("/w/")[0]
        sign_out_elsewhere(ada)
        assert status(page, f"{origin}/w/{session_in(page)}/api/kernels") == 401


@pytest.mark.long
def test_a_starter_notebook_launches_jobs_and_compares_them(browser: Browser, empty_world: World) -> None:
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        start_jupyter(ada, size="medium")
        page = ada.page
        page.goto(f"{page.url.partition('/lab')[0]}/lab/tree/Starter%20notebooks/2-launch-and-compare-jobs.ipynb?reset")
        has_kernel(page, "2-launch-and-compare-jobs")
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        outputs = page.locator(".jp-NotebookPanel .jp-OutputArea-output")
        expect(outputs.filter(has_text="SUCCEEDED model version")).to_be_visible(timeout=TRAINS)
        expect(page.locator(".jp-NotebookPanel .jp-RenderedImage img")).to_be_visible()
        expect(page.locator("[data-mime-type='application/vnd.jupyter.error']")).to_have_count(0)
        names = {one.name for one in empty_world.client.jobs.list() if one.phase == "SUCCEEDED"}
        assert names >= {"digits-rate-0.003", "digits-rate-0.0001"}


@pytest.mark.long
def test_jupyterlab_says_that_its_session_was_stopped_and_where_it_is_started(
    browser: Browser, empty_world: World
) -> None:
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        start_jupyter(ada)
        session = session_in(ada.page)
        ada.forgive("")  # JupyterLab reports each request that is refused
        empty_world.client.transport.post(f"sessions/{session}/stop/", {})
        told = ada.page.get_by_role("alert").filter(has_text="It was stopped.")
        expect(told).to_be_visible(timeout=STARTS)
        with ada.context.expect_page() as opened:
            told.get_by_role("link", name="Show the session").click()
        expect(opened.value.get_by_role("button", name="Start")).to_be_visible(timeout=STARTS)


@pytest.mark.long
def test_the_page_of_a_version_opens_it_in_a_notebook(browser: Browser, empty_world: World) -> None:
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        ada.goto(f"/code/{empty_world.ids['code']}/")
        ada.page.get_by_role("button", name="Open in Jupyter").click()
        ada.page.wait_for_url(re.compile(r"/lab(/workspaces/[^/]+)?/tree/From%20the%20portal/"), timeout=STARTS)
        has_kernel(ada.page, "code digits")
        ada.page.get_by_role("menuitem", name="Run", exact=True).click()
        ada.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        outputs = ada.page.locator(".jp-NotebookPanel .jp-OutputArea-output")
        expect(outputs.filter(has_text="between_graph.py")).to_be_visible(timeout=STARTS)
        expect(ada.page.locator("[data-mime-type='application/vnd.jupyter.error']")).to_have_count(0)


@pytest.mark.long
def test_a_tensorboard_shows_a_training_as_it_goes_on_and_what_came_of_it(browser: Browser, empty_world: World) -> None:
    paced = ("--steps=100000", "--step_sleep=0.1", "--log_every=5")
    job = empty_world.client.jobs.launch(training(empty_world, "watched", *paced))
    until(lambda: empty_world.client.jobs.get(job.id).phase == "RUNNING", 90, "the training to run")
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        ada.goto(f"/jobs/{job.id}/")
        ada.page.get_by_role("button", name="TensorBoard").click()
        ada.page.wait_for_url(re.compile(r"/w/[0-9a-f-]+/"), timeout=STARTS)
        board = ada.page
        until(lambda: _points(board), 180, "a curve")
        board.get_by_role("tab", name="Time Series").click()  # what came first may have been the graph
        expect(board.locator(CARD)).to_be_visible(timeout=STARTS)
        assert _usual_wait_for_a_step(board, 40) <= LIVE
        before = _points(board)
        empty_world.client.jobs.stop(job.id)
        until(lambda: empty_world.client.jobs.get(job.id).cleaned_up_at, 90, "the job to be cleaned up")
        assert empty_world.client.jobs.get(job.id).phase == "STOPPED"
        assert _points(board)[: len(before)] == before
        address = board.url
        sign_out_elsewhere(ada)
        ada.forgive(r"401|console: ERROR \w+ \(http://\w+\.localhost")  # TensorBoard reports what it is refused
        assert status(board, f"/w/{session_in(board)}/data/runs") == 401
        with visitor(browser, empty_world.url) as bob:
            bob.forgive("404|403|401")
            bob.sign_in("bob")
            bob.goto(f"/sessions/{session_in(board)}/", status=404)
            bob.page.goto(address)
            expect(bob.page.get_by_text("no such session")).to_be_visible()


def _run(page: Page, code: str) -> str:
    """Run a cell at the notebook's end; what it returned."""
    before = page.locator(".jp-OutputArea-executeResult").count()
    page.locator(".jp-NotebookPanel .cm-content").last.click()
    page.keyboard.type(code)
    page.keyboard.press("Shift+Enter")
    result = page.locator(".jp-OutputArea-executeResult").nth(before)
    expect(result).to_be_visible(timeout=STARTS)
    return result.locator("pre").inner_text().strip()


def _usual_wait_for_a_step(board: Page, seconds: float) -> float:
    """How long it took until the card that a person looks at showed a step that was written, as a median. Nothing
    touches the page: it must move by itself."""
    until(lambda: _step_on(board), 60, "the card's table")
    seen: list[tuple[float, int]] = []
    until_then = time.monotonic() + seconds
    while time.monotonic() < until_then:
        seen.append((time.time(), _step_on(board)))
        board.wait_for_timeout(200)
    assert seen[0][1] < seen[-1][1], "the card does not move"
    begun, ended = seen[0][0], seen[-1][0]
    waits = [
        next((at for at, shown in seen if shown >= step), ended) - then
        for then, step in _points(board)
        if begun < then < ended - 2 * LIVE
    ]
    assert waits, "no step was written while one looked"
    return median(waits)


def _step_on(board: Page) -> int:
    """The newest step in the table below the card's curve; 0 before it has one."""
    cells = board.locator(CARD).inner_text().rpartition("Relative")[2].split("\n\t\n")
    return int(cells[-2].replace(",", "")) if len(cells) > 4 else 0


def _points(board: Page) -> list[tuple[float, int]]:
    """When each step of the accuracy was written, asked as TensorBoard's own page asks."""
    return board.evaluate(  # type: ignore[no-any-return]
        """async () => {
            const tags = await (await fetch("data/plugin/scalars/tags")).json();
            const found = [];
            for (const [run, of] of Object.entries(tags))
                for (const tag of Object.keys(of).filter((one) => one === "accuracy")) {
                    const query = new URLSearchParams({ run, tag });
                    found.push(...(await (await fetch(`data/plugin/scalars/scalars?${query}`)).json()));
                }
            return found.map(([time, step]) => [time, step]);
        }"""
    )
