"""What the pages of a job keep their reader from losing: the job, what was typed, the portal; and where a log leads."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, Dialog, Page, Route, WebSocketRoute, expect

from tests.browser.visitor import DESK, PHONE, Look, Visitor, visitor
from tests.browser.world import World, script
from tests.real.scene import until

TALKER = """
import time
for number in range(60):
    print("line", number)
print("See https://example.org/docs?a=1&b=2. Not javascript:alert(1) <b>bold</b>", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def code(empty_world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "talker.py").write_text(TALKER)
    latest = empty_world.client.code.put("talkers", [folder]).latest
    assert latest is not None
    return latest.id


@pytest.fixture
def job(empty_world: World, code: str):
    jobs = empty_world.client.jobs
    one = jobs.launch(script(empty_world, "a job with a long name " * 4, "talker.py", code=code))
    until(lambda: any("See https" in line.text for line in jobs.lines(one.id)), 60, "its last line")
    until(lambda: jobs.get(one.id).phase == "RUNNING", 60, "the job to run")
    yield one.id
    jobs.stop(one.id)


@pytest.fixture
def queued(empty_world: World, code: str):
    """Three jobs that never start."""
    jobs, roles = empty_world.client.jobs, {"worker": {"cpu": 500, "memory": "1Gi"}}
    specs = [script(empty_world, f"too large {n}", "talker.py", code=code, roles=roles) for n in range(3)]
    ids = [jobs.launch(spec, accept_never_fits=True).id for spec in specs]
    yield ids
    for one in ids:
        jobs.stop(one)


# Has the page look at the job; done once the parts that came are in their places.
LOOK = """() => new Promise((done) => {
    addEventListener("htmx:afterRequest", ({ detail }) => {
        if (detail.pathInfo.requestPath === location.pathname) done();
    });
    document.body.dispatchEvent(new CustomEvent("job-changed"));
})"""


def is_running(page: Page):
    return page.locator("#job-status[data-phase=RUNNING]")


def test_a_stop_is_confirmed_with_the_keyboard(owner: Visitor, empty_world: World, job: str):
    owner.goto(f"/jobs/{job}/")
    page = owner.page
    page.locator("#job-stop").press("Enter")
    question = page.locator("#job-actions .dropdown-menu")
    expect(question).to_contain_text("Its tasks have 5 s to save and exit.")
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    expect(page.locator("#job-stop")).to_be_focused()
    expect(is_running(page)).to_be_visible()
    assert empty_world.client.jobs.get(job).wanted == "RUN"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Stop job")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#job-status[data-phase=STOPPED]")).to_be_visible(timeout=60_000)


def test_a_look_at_the_job_leaves_the_keyboard_where_it_is(owner: Visitor, job: str):
    owner.goto(f"/jobs/{job}/")
    page = owner.page
    page.locator("#job-stop").press("Enter")
    page.keyboard.press("Tab")
    button = page.get_by_role("button", name="Stop job")
    token = page.locator("#job-actions input[name=csrfmiddlewaretoken]").first
    before, old = token.input_value(), button.element_handle()
    page.evaluate(LOOK)
    assert old.evaluate("one => one === document.activeElement"), "what has not changed stays"
    assert token.input_value() != before

    def renamed(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("Clone", "Clone it"))

    page.route(f"**/jobs/{job}/", renamed)
    page.evaluate(LOOK)
    expect(page.locator("#job-clone")).to_have_text("Clone it")
    expect(button).to_be_focused()
    page.unroute(f"**/jobs/{job}/")
    page.keyboard.press("Enter")
    expect(page.locator("#job-status[data-phase=STOPPED]")).to_be_visible(timeout=60_000)


def test_a_button_that_is_held_down_is_clicked_though_its_part_has_changed(owner: Visitor, queued: list[str]):
    page, path = owner.page, f"/jobs/{queued[0]}/"
    owner.goto(path)

    def renamed(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("Clone", "Clone it"))

    page.route(f"**{path}", renamed)
    page.locator("#job-stop").hover()
    page.mouse.down()
    page.evaluate(LOOK)
    expect(page.locator("#job-clone")).to_have_text("Clone")
    page.mouse.up()
    expect(page.get_by_role("button", name="Stop job")).to_be_visible()
    expect(page.locator("#job-clone")).to_have_text("Clone it")
    page.unroute(f"**{path}")


def test_what_happens_before_the_portal_greets_an_open_page_is_shown(
    owner: Visitor, empty_world: World, queued: list[str]
):
    page, jobs, job = owner.page, empty_world.client.jobs, queued[0]
    lines: list[WebSocketRoute] = []
    page.route_web_socket(re.compile(f"/ws/jobs/{job}/$"), lambda line: lines.append(line))
    jobs.stop(job)
    until(lambda: jobs.get(job).cleaned_up_at, 60, "the job to be over")
    owner.goto(f"/jobs/{job}/")
    expect(page.locator("#job-status[data-phase=STOPPED][data-over=yes]")).to_be_visible()
    until(lambda: bool(page.evaluate("1")) and lines, what="the page to listen")
    jobs.retry(job, accept_never_fits=True)
    page.wait_for_function("""() => {
        const [loaded] = performance.getEntriesByType("navigation");
        return performance.now() > loaded.responseStart + 1_000;
    }""")
    lines[0].send(json.dumps({"type": "ready"}))
    expect(page.locator("#job-status[data-phase=QUEUED]")).to_be_visible()


def test_a_job_that_is_not_over_is_looked_at_soon_though_the_portal_says_nothing(owner: Visitor, queued: list[str]):
    page, path = owner.page, f"/jobs/{queued[0]}/"
    page.route_web_socket(re.compile(f"/ws{path}$"), lambda line: None)
    # Less than the time between two looks.
    with page.expect_request(lambda one: one.url.endswith(path) and "hx-request" in one.headers, timeout=18_000):
        owner.goto(path)


def test_rows_that_change_while_others_are_asked_for_are_asked_for_next(owner: Visitor, queued: list[str]):
    page = owner.page
    lines: list[WebSocketRoute] = []
    held: list[Route] = []
    asked: set[str] = set()
    page.clock.install()
    page.route_web_socket(re.compile("/ws/jobs/$"), lambda line: lines.append(line))
    page.route(re.compile("/jobs/rows/"), lambda route: held.append(route), times=1)
    page.on("request", lambda one: asked.update(re.findall("job=([0-9a-f-]{36})", one.url)))
    owner.goto("/jobs/")
    until(lambda: bool(page.evaluate("1")) and lines, what="the page to listen")
    for one in queued:
        lines[0].send(json.dumps({"type": "job", "id": one}))
        page.clock.run_for(1_000)
        until(lambda: bool(page.evaluate("1")) and held, what="the first row to be asked for")
    assert asked == {queued[0]}
    held[0].continue_()
    # Less than the time between two looks at all rows.
    until(lambda: bool(page.evaluate("1")) and asked == set(queued), 15, "all rows to be asked for")


def test_a_part_that_is_lost_while_the_portal_is_looked_for_is_said(owner: Visitor):
    owner.goto("/datasets/")
    owner.page.evaluate("""() => {
        document.dispatchEvent(new Event("portal-silent"));
        document.dispatchEvent(new CustomEvent("portal-silent", { detail: "part" }));
    }""")
    expect(owner.page.get_by_text("A part of the page did not load. Try again.")).to_be_visible()


def test_a_stop_is_confirmed_without_a_script(browser: Browser, empty_world: World, owner_state, job: str):
    with visitor(browser, empty_world.url, storage_state=owner_state, java_script_enabled=False) as one:
        one.goto(f"/jobs/{job}/")
        expect(one.page.get_by_role("button", name="Stop job")).to_be_hidden()
        one.page.locator("#job-stop").click()
        one.page.get_by_role("button", name="Stop job").click()
        expect(one.page.locator(".toast-note")).to_contain_text("Stopping.")
    assert empty_world.client.jobs.get(job).wanted == "STOP"


@pytest.mark.parametrize("look", [DESK, PHONE], ids=str)
def test_the_name_and_the_state_stay_in_sight(browser: Browser, empty_world: World, owner_state, job: str, look: Look):
    with visitor(browser, empty_world.url, look, storage_state=owner_state) as one:
        one.goto(f"/jobs/{job}/")
        bar = one.page.locator(".job-bar-line")
        expect(bar).to_be_hidden()
        one.page.evaluate("document.getElementById('log').scrollIntoView()")
        expect(bar).to_be_visible()
        expect(bar).to_contain_text("Running")
        line, header = bar.bounding_box(), one.page.locator(".site-header").bounding_box()
        title = one.page.locator("#log-title").bounding_box()
        assert line is not None
        assert header is not None
        assert title is not None
        assert header["y"] == 0
        assert header["height"] <= line["y"] <= header["height"] + 2
        assert line["x"] + line["width"] <= look.width
        assert title["y"] >= line["y"] + line["height"]
        bar.get_by_role("link").click()
        expect(bar).to_be_hidden()


def test_an_address_in_a_log_is_a_link_and_nothing_else_is(owner: Visitor, job: str):
    owner.goto(f"/jobs/{job}/logs/")
    links = owner.page.locator(".log-text a")
    expect(links).to_have_count(1)
    expect(links).to_have_text("https://example.org/docs?a=1&b=2")
    expect(links).to_have_attribute("href", "https://example.org/docs?a=1&b=2")
    expect(links).to_have_attribute("target", "_blank")
    expect(links).to_have_attribute("rel", "noopener noreferrer nofollow")
    owner.page.locator("#log-query").fill("example.org")
    expect(links.locator("mark")).to_have_text("example.org")


def test_leaving_the_launch_form_is_asked_about_once_something_was_typed(owner: Visitor, code: str):
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    owner.page.on("dialog", answer)
    owner.goto(f"/jobs/launch/?code={code}")
    expect(owner.page.locator("#launch-verdict strong")).to_be_visible()
    owner.goto("/jobs/")
    assert asked == []
    owner.goto(f"/jobs/launch/?code={code}")
    owner.page.get_by_label("Name", exact=True).press_sequentially("mine")
    owner.goto("/jobs/")
    assert asked == ["beforeunload"]


def test_a_file_of_the_form_is_downloaded_and_the_form_still_launches(owner: Visitor, code: str):
    owner.goto(f"/jobs/launch/?code_version={code}&preset=single")
    page = owner.page
    page.locator("#launch-as-manifests summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
    assert download.value.suggested_filename == "job.yaml"
    page.get_by_role("button", name="Launch").locator("visible=true").first.click()
    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}/$"))


def test_a_press_on_download_counts_though_the_button_moves_under_it(owner: Visitor, code: str):
    """As one on Launch: the check's answer comes above it."""
    page = owner.page
    owner.goto(f"/jobs/launch/?code_version={code}&preset=single")
    page.wait_for_load_state("networkidle")
    page.locator("#launch-as-manifests summary").click()
    page.get_by_role("button", name="Download", exact=True).hover()
    page.mouse.down()
    page.evaluate("document.getElementById('launch-verdict').style.paddingBottom = '150px'")
    with page.expect_download() as download:
        page.mouse.up()
    assert download.value.suggested_filename == "job.yaml"


def test_a_portal_that_is_away_is_said_until_it_is_back(owner: Visitor, empty_world: World, job: str):
    owner.goto(f"/jobs/{job}/")
    owner.forgive("ERR_|WebSocket|status of 50|net::|50. from|htmx:sendError")
    away = owner.page.locator(".portal-away")
    expect(away).to_be_hidden()
    empty_world.portal.kill("web")
    expect(away).to_contain_text("The portal does not respond.", timeout=30_000)
    empty_world.portal.start("web")
    expect(away).to_be_hidden(timeout=60_000)
    expect(is_running(owner.page)).to_be_visible()
