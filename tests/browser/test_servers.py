"""TensorFlow servers only, in a browser: chosen, launched, connected to, and stopped, on a desk and on a phone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from portal.env import task_python
from tests.browser.axe import serious_findings
from tests.browser.visitor import DESK_FIRST, Look, Visitor, visitor
from tests.browser.world import TASK, World
from tests.real.scene import until

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(400)]
STARTS = 120_000
_NOTE_COPY = """() => {
    window.said = [];
    const look = () => said.push(document.querySelector("#job-servers [data-copy]")?.textContent);
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""
"""Notes what the button to copy says at each change of the page: it says "Copied" for two seconds alone."""


@pytest.fixture(scope="module")
def servers(empty_world: World) -> Iterator[str]:
    """The id of a job whose servers are up, all of them answering."""
    job = empty_world.client.jobs.launch(
        {
            "name": "drive me <b>&amp; see", "strategy": "in_graph", "max_runtime": 1800, "grace_period": 5,
            "roles": {"worker": {"replicas": 2, **TASK}, "ps": dict(TASK)},
            "inputs": [{"dataset_version": empty_world.ids["dataset-version"]}],
        }
    )  # fmt: skip
    until(lambda: empty_world.client.jobs.get(job.id).phase == "RUNNING", STARTS / 1000, "all servers to answer")
    yield job.id
    empty_world.client.jobs.stop(job.id)
    empty_world.client.jobs.wait(job.id, timeout=60)


@pytest.fixture(params=DESK_FIRST, ids=str)
def guest(request: pytest.FixtureRequest, browser: Browser, empty_world: World, owner_state) -> Iterator[Visitor]:
    look: Look = request.param
    with visitor(browser, empty_world.url, look, storage_state=owner_state) as one:
        yield one


def assert_good_page(one: Visitor) -> None:
    one.page.wait_for_load_state("networkidle")
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    assert serious_findings(one.page) == []
    one.assert_content()


@pytest.mark.long
def test_the_notebook_from_the_page_really_drives_them_until_they_are_stopped(owner: Visitor, empty_world: World):
    """First of all: beside the servers of the other tests there would be no room."""
    page = owner.page
    owner.goto("/jobs/launch/?preset=in_graph")
    page.locator("#f-name").fill("from the form")
    page.locator("#launch-limits summary").click()
    page.locator("#f-max_runtime").fill("30m")
    page.locator("#launch-button").click()
    expect(page.locator("#job-status[data-phase=RUNNING]")).to_be_visible(timeout=STARTS)
    job = page.url.rstrip("/").rpartition("/")[2]
    log = page.locator("#log")
    log.scroll_into_view_if_needed()
    for task in ("worker-0", "worker-1", "ps-0"):
        expect(log).to_contain_text(f"/job:{task[:-2]}/task:{task[-1]}.", timeout=STARTS)
    with page.expect_download() as download:
        page.get_by_role("link", name="Starter notebook").click()
    notebook = json.loads(download.value.path().read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    done = subprocess.run([task_python(), "-c", "\n\n".join(cells)], capture_output=True, text=True, timeout=120)
    assert "slope 3.00 (it is 3), offset 2.00 (it is 2)" in done.stdout, done.stderr
    page.locator("#job-stop").click()
    page.get_by_role("button", name="Stop job").click()
    expect(page.locator("#job-status[data-phase=STOPPED]")).to_be_visible(timeout=STARTS)
    expect(page.locator("#job-servers")).not_to_contain_text("grpc://")
    assert empty_world.client.jobs.get(job).reason == "Stopped"
    owner.assert_content()


def test_the_launch_page_offers_servers_without_a_script(guest: Visitor):
    page = guest.page
    guest.goto("/jobs/launch/")
    page.locator("label[class=launch-preset]", has_text="TensorFlow servers only").click()
    expect(page.get_by_role("heading", name="Name and data")).to_be_visible()
    expect(page.get_by_label("Script", exact=True)).to_have_count(0)
    expect(page.locator("#launch-words")).to_contain_text("your own program drives them")
    expect(page.locator("#launch-verdict")).to_contain_text("until they are stopped")
    assert_good_page(guest)
    page.locator("label[class=launch-preset]", has_text="Single task").click()
    expect(page.get_by_label("Script", exact=True)).not_to_have_value("")


def test_the_job_page_says_where_they_are_and_gives_a_notebook(guest: Visitor, servers: str):
    page = guest.page
    guest.goto(f"/jobs/{servers}/")
    place = page.locator("#job-servers")
    expect(place.locator("pre code")).to_contain_text("grpc://127.0.0.1:")
    page.evaluate(_NOTE_COPY)
    place.get_by_role("button", name="Copy").click()
    page.wait_for_function("window.said.includes('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == place.locator("pre code").inner_text()
    expect(place).to_contain_text("Only from the machine")
    place.locator("summary").click()
    expect(place.get_by_role("row")).to_have_count(4)
    assert_good_page(guest)
    with page.expect_download() as download:
        place.get_by_role("link", name="Starter notebook").click()
    assert download.value.suggested_filename == f"in-graph-{servers}.ipynb"
