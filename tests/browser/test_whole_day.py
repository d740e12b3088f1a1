"""A whole day at the portal, on a wide screen in light and on a phone in dark, with real training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visitor import DESK_FIRST, Look, Visitor, fields_answered, visitor
from tests.browser.world import EXAMPLE, World, digits
from yardmaster_client import LogLine

pytestmark = [pytest.mark.long, pytest.mark.tensorflow, pytest.mark.timeout(400)]
TRAINS = 120_000
HUNGRY = """
import time
held = bytearray(320 << 20)
print("holding", len(held) >> 20, "MiB", flush=True)
for _ in range(40):  # touched again and again: a system may take idle memory from it
    held[::4096] = b"x" * (len(held) // 4096)
    time.sleep(0.1)
print("let go", flush=True)
"""


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders that Ada has on her machine: `data` and `training`."""
    folder = tmp_path_factory.mktemp("material")
    digits(folder / "data", "--shards=4")
    (folder / "training").mkdir()
    for script in EXAMPLE.glob("*.py"):
        (folder / "training" / script.name).write_text(script.read_text())
    (folder / "training" / "hungry.py").write_text(HUNGRY)
    return folder


@pytest.fixture(params=DESK_FIRST, ids=str)
def look(request: pytest.FixtureRequest) -> Look:
    return request.param


@pytest.fixture
def day(browser: Browser, empty_world: World, look: Look) -> Iterator[Visitor]:
    with visitor(browser, empty_world.url, look) as one:
        yield one


def test_a_whole_day(day: Visitor, empty_world: World, material: Path, look: Look, browser: Browser):
    page, name = day.page, f"day {look}"
    day.sign_in("ada")
    _upload_a_dataset(day, material, name)
    _upload_code(day, material, name)
    stopped = _launch(day, name)
    _watch(day)
    _lose_the_network_and_come_back(day, empty_world, stopped)
    page.goto(f"{day.url}/jobs/{stopped}/")
    page.locator("#job-stop").click()
    page.get_by_role("button", name="Stop job").click()
    expect(page.locator("#job-status[data-phase=STOPPED][data-over=yes]")).to_be_visible(timeout=TRAINS)
    changed = _clone_with_a_change(day)
    _compare(day, stopped, changed)
    _fail_and_retry(day, name)
    _share_a_line(day, browser, changed, look)
    day.sign_out()
    day.goto(f"/jobs/{changed}/")
    expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()


def _upload_a_dataset(day: Visitor, material: Path, name: str) -> None:
    page, data = day.page, material / "data"
    day.goto("/datasets/upload/")
    day.drop("#drop", sorted(data.iterdir()), data)
    expect(page.locator("#chosen-words")).to_contain_text("file")
    expect(page.locator("#quota-after")).to_be_visible()
    page.locator("#name").fill(name)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.locator(".class-bars").first).to_contain_text("%")


def _upload_code(day: Visitor, material: Path, name: str) -> None:
    page = day.page
    day.goto("/code/upload/")
    page.locator("#pick-folder").set_input_files(material / "training")
    page.locator("#name").fill(name)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.locator(".code-tree")).to_contain_text("between_graph.py")
    page.get_by_role("link", name=re.compile("Launch")).last.click()
    expect(page.get_by_role("heading", name="Launch a job")).to_be_visible()


def _launch(day: Visitor, name: str) -> str:
    """1 parameter server and 2 workers, with the numbers typed; returns the job's id."""
    page = day.page
    page.locator("label[for=preset-between_graph], label:has(#preset-between_graph)").first.click()
    page.locator("input[data-role=ps]").fill("1")
    page.locator("input[data-role=worker]").fill("2")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Script", exact=True).fill("between_graph.py")
    _choose(page, "select[name$=dataset_version]", name)
    _open(page, "#launch-script")
    page.get_by_label("Arguments").fill("--steps=20000\n--step_sleep=0.02\n--log_every=1")
    for number, (variable, value) in enumerate({"TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "1"}.items(), 1):
        if number > 1:
            page.get_by_role("button", name="Add variable").click()
        page.get_by_label(f"Variable {number}: name").fill(variable)
        page.get_by_label(f"Variable {number}: value").fill(value)
    _small(page, "ps", "worker")
    expect(page.locator("#launch-words")).to_contain_text("1 parameter server")
    return _launched(page)


def _choose(page: Page, select: str, name: str) -> None:
    """The newest version of what has this name."""
    field = page.locator(select).first
    option = field.locator("option").filter(has_text=f"{name}, version").first
    field.select_option(option.get_attribute("value"))


def _open(page: Page, section: str) -> None:
    if page.locator(section).get_attribute("open") is None:
        page.locator(f"{section} > summary").click()


def _small(page: Page, *roles: str) -> None:
    """Resources of which a small machine has enough."""
    _open(page, "#launch-resources")
    for role in roles:
        fields = page.locator(f"[data-of-role={role}]")
        fields.get_by_label("CPU").fill("0.25")
        fields.get_by_label("Memory").fill("1.5Gi")


def _launched(page: Page) -> str:
    expect(page.locator("#launch-verdict")).to_contain_text("Fits now")
    page.get_by_role("button", name="Launch").locator("visible=true").first.click()
    expect(page.locator("#job-status")).to_be_visible()
    return page.url.rstrip("/").rpartition("/")[2]


def _watch(day: Visitor) -> None:
    """The state, the tab, the log and the curves move by themselves."""
    page = day.page
    expect(page.locator("#job-status[data-phase=RUNNING]")).to_be_visible(timeout=TRAINS)
    expect(page).to_have_title(re.compile("Running"))
    expect(page.locator(".task-card")).to_have_count(3)
    page.locator("#log").scroll_into_view_if_needed()
    expect(page.locator("#log [data-state]")).to_have_text("Live")
    expect(page.locator("#log .log-row").first).to_be_visible(timeout=TRAINS)
    before = page.locator("#log [data-total]").inner_text()
    expect(page.locator("#log [data-total]")).not_to_have_text(before, timeout=TRAINS)
    page.locator("#job-curves").scroll_into_view_if_needed()
    expect(page.locator("#job-curves canvas").first).to_be_visible(timeout=TRAINS)


def _lose_the_network_and_come_back(day: Visitor, world: World, job: str) -> None:
    """What was written while the browser was away is there afterwards, each line once."""
    page = day.page
    day.goto(f"/jobs/{job}/logs/?task=worker-0")
    state = page.locator("[data-state]")
    expect(state).to_have_text("Live")
    day.forgive("ERR_INTERNET_DISCONNECTED")
    day.context.set_offline(True)
    expect(state).to_contain_text("reconnecting")
    page.wait_for_timeout(1_500)
    day.context.set_offline(False)
    expect(state).to_have_text("Live")
    page.wait_for_timeout(500)
    shown = page.locator("a.log-number").evaluate_all("all => all.map((one) => Number(one.textContent))")
    assert shown == list(range(shown[0], shown[0] + len(shown)))
    lines = [one.number for one in world.client.jobs.lines(job, role="worker", index=0) if isinstance(one, LogLine)]
    assert shown[-1] <= len(lines)


def _clone_with_a_change(day: Visitor) -> str:
    page = day.page
    page.locator("#job-clone").click()
    _open(page, "#launch-script")
    arguments = page.get_by_label("Arguments")
    expect(arguments).to_have_value(re.compile("--step_sleep=0.02"))
    arguments.fill("--steps=150\n--learning_rate=0.01")
    _open(page, "#launch-limits")
    page.get_by_label("Parameter server shutdown delay").fill("2")
    job = _launched(page)
    expect(page.locator("#job-status[data-phase=SUCCEEDED]")).to_be_visible(timeout=TRAINS)
    expect(page).to_have_title(re.compile("Succeeded"))
    return job


def _compare(day: Visitor, first: str, second: str) -> None:
    page = day.page
    day.goto("/jobs/")
    for job in (first, second):
        page.locator(f"#tick-{job}").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name="Compare jobs")).to_be_visible()
    expect(page.locator(".compare-differs").filter(has_text="learning_rate")).to_be_visible()
    page.locator("#compare-scalars").scroll_into_view_if_needed()
    expect(page.locator(".compare-chart canvas").first).to_be_visible()


def _fail_and_retry(day: Visitor, name: str) -> None:
    """A script that needs more memory than it asked for: the page says so and offers the retry that helps."""
    page = day.page
    day.goto("/jobs/launch/")
    with fields_answered(page):
        page.locator("label:has(#preset-single)").click()
    expect(page.locator(".launch-single")).to_be_visible()
    with fields_answered(page):
        _choose(page, "select[name=code]", name)
    expect(page.locator("#launch-scripts option[value='hungry.py']")).to_be_attached()
    page.get_by_label("Name", exact=True).fill(f"{name} hungry")
    page.get_by_label("Script", exact=True).fill("hungry.py")
    _open(page, "#launch-resources")
    page.locator("[data-of-role=worker]").get_by_label("CPU").fill("0.1")
    page.locator("[data-of-role=worker]").get_by_label("Memory").fill("256Mi")
    _open(page, "#launch-paths")
    for field in page.locator("#launch-paths input").all():
        if (field.input_value() or "").startswith("--"):
            field.fill("")
    _open(page, "#launch-limits")
    page.get_by_label("Restarts").fill("0")
    page.get_by_label("Parameter server shutdown delay").fill("1")
    _launched(page)
    expect(page.locator("#job-status[data-phase=FAILED]")).to_be_visible(timeout=TRAINS)
    expect(page).to_have_title(re.compile("Failed"))
    expect(page.locator("#job-status")).to_contain_text("failed first")
    expect(page.locator("#job-status")).to_contain_text("256 MiB")
    page.locator("#job-retry-change").click(timeout=TRAINS)
    expect(page.locator("#job-status[data-phase=SUCCEEDED]")).to_be_visible(timeout=TRAINS)


def _chosen(page: Page) -> tuple[str, str]:
    """The number and the text of the chosen line, without the button that folds the lines which begin with it."""
    row = page.locator(".log-chosen").first
    return row.locator(".log-number").inner_text(), row.locator(".log-text").inner_text()


def _share_a_line(day: Visitor, browser: Browser, job: str, look: Look) -> None:
    """The copied address leads another browser, which must sign in first, to the same line."""
    page = day.page
    day.goto(f"/jobs/{job}/logs/?task=worker-0")
    page.locator("a.log-number").first.click()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".toast-note").filter(has_text="Link copied.")).to_be_visible()
    link = page.evaluate("() => navigator.clipboard.readText()")
    marked = _chosen(page)
    with visitor(browser, day.url, look) as other:
        other.goto(link)
        other.give_password("ada")
        expect(other.page.locator(".log-chosen-bar")).to_contain_text("worker-0, line")
        assert _chosen(other.page) == marked
