"""What no plan covers: a tab left open over a restart, two people at once, a double click, a job that goes away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.visitor import Visitor, fields_answered, visitor
from tests.browser.world import World, script
from tests.real.scene import until

pytestmark = pytest.mark.long

WAIT = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"


@pytest.fixture(scope="module")
def code(empty_world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "wait.py").write_text(WAIT)
    (folder / "quick.py").write_text("print('done')\n")
    latest = empty_world.client.code.put("scripts", [folder]).latest
    assert latest is not None
    return latest.id


def launched(world: World, code: str, name: str, entry_point: str = "wait.py") -> str:
    job = world.client.jobs.launch(script(world, name, entry_point, code=code))
    if entry_point == "wait.py":
        until(lambda: world.client.jobs.get(job.id).phase == "RUNNING", 60, "the job to run")
    else:
        until(lambda: world.client.jobs.get(job.id).cleaned_up_at, 60, "the job to end")
    return job.id


def phase(page: Page, wanted: str):
    return page.locator(f"#job-status[data-phase={wanted}]")


@pytest.mark.long
def test_tabs_left_open_over_a_restart_go_on_by_themselves(owner: Visitor, empty_world: World, code: str):
    job = launched(empty_world, code, "restarted")
    owner.goto(f"/jobs/{job}/")
    jobs_tab = owner.another_tab()
    jobs_tab.goto(f"{owner.url}/jobs/")
    expect(jobs_tab.locator(f"#job-{job}[data-phase=RUNNING]")).to_be_visible()
    owner.forgive("ERR_|WebSocket|status of 50|net::|50. from|htmx:sendError")
    for name in ("web", "worker", "beat", "conductor"):
        empty_world.portal.kill(name)
    empty_world.portal.start("web", "worker", "beat", "conductor")
    expect(owner.page.locator(".portal-away")).to_be_hidden(timeout=60_000)  # what goes away moves the buttons
    owner.page.locator("#job-stop").click()
    owner.page.get_by_role("button", name="Stop job").click()
    expect(phase(owner.page, "STOPPED")).to_be_visible(timeout=60_000)
    expect(jobs_tab.locator(f"#job-{job}[data-phase=STOPPED]")).to_be_visible(timeout=60_000)


@pytest.mark.long
def test_two_who_stop_one_job_are_both_told_well(owner: Visitor, empty_world: World, code: str):
    job = launched(empty_world, code, "stopped twice")
    owner.goto(f"/jobs/{job}/")
    other = owner.another_tab()
    other.goto(f"{owner.url}/jobs/{job}/")
    form = other.locator("#job-actions form").first.evaluate_handle("one => one")
    owner.page.locator("#job-stop").click()
    owner.page.get_by_role("button", name="Stop job").click()
    form.evaluate("one => one.isConnected ? one.requestSubmit() : location.reload()")
    for page in (owner.page, other):
        expect(phase(page, "STOPPED")).to_be_visible(timeout=60_000)
        assert page.locator(".toast-note[data-kind=error]").count() == 0


def test_a_double_click_launches_one_job(owner: Visitor, empty_world: World, code: str):
    before = {job.id for job in empty_world.client.jobs.list()}
    source = launched(empty_world, code, "clicked", "quick.py")
    owner.goto(f"/jobs/launch/?from={source}")
    expect(owner.page.locator("#launch-verdict")).to_contain_text("Fits now")
    sent: list[str] = []
    owner.page.on(
        "request", lambda one: sent.append(one.url) if one.method == "POST" and one.is_navigation_request() else None
    )
    owner.page.get_by_role("button", name="Launch").locator("visible=true").first.dblclick()
    expect(owner.page.locator("#job-status")).to_be_visible()
    assert len(sent) == 1
    made = {job.id for job in empty_world.client.jobs.list()} - before - {source}
    assert len(made) == 1
    owner.page.go_back()
    expect(owner.page.get_by_role("heading", name="Launch a job")).to_be_visible()


def test_a_button_to_copy_that_is_pressed_twice_says_again_what_it_does(owner: Visitor):
    page = owner.page
    page.clock.install()
    owner.goto("/account/")
    button = page.locator("[data-copy]").first
    expect(button).to_have_text("Copy")
    page.clock.pause_at(page.evaluate("Date.now() / 1_000") + 20)  # it goes on until it is told
    button.click()
    expect(button).to_have_text("Copied")
    page.clock.run_for(1_500)
    # It says "Copied" already, and the browser writes the clipboard when it can: other words tell when it did.
    button.evaluate("it => (it.textContent = 'not yet')")
    button.click()
    expect(button).to_have_text("Copied")
    page.clock.run_for(1_500)
    expect(button).to_have_text("Copied")
    page.clock.run_for(500)
    expect(button).to_have_text("Copy")


def test_a_job_that_is_deleted_elsewhere_leaves_its_page_with_words(owner: Visitor, empty_world: World, code: str):
    job = launched(empty_world, code, "deleted", "quick.py")
    owner.goto(f"/jobs/{job}/")
    empty_world.client.jobs.delete(job)
    # The page may have asked for its parts before the click.
    owner.forgive("status of 404|Status Error Code 404|WebSocket")
    owner.page.locator("#job-delete").click()
    expect(owner.page.locator(".problem")).to_contain_text("may have been deleted")


def test_a_session_that_was_ended_elsewhere_asks_to_sign_in_and_comes_back(browser: Browser, empty_world: World):
    with visitor(browser, empty_world.url) as here, visitor(browser, empty_world.url) as there:
        here.sign_in("bob")  # Ada's other sessions are the other tests'
        there.sign_in("bob")
        here.goto("/datasets/")
        there.goto("/account/sessions/")
        there.page.locator("summary").filter(has_text="End all others").click()
        there.page.get_by_role("button", name="End all others").click()
        expect(there.page.locator(".toast-note")).to_be_visible()
        here.page.get_by_role("link", name="Code", exact=True).click()
        expect(here.page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()
        here.give_password("bob")
        expect(here.page.get_by_role("heading", name="Code", exact=True)).to_be_visible()


def test_what_was_typed_is_there_when_the_job_is_refused(owner: Visitor, empty_world: World, code: str):
    owner.goto(f"/jobs/launch/?code={code}")
    page = owner.page
    page.get_by_label("Name", exact=True).fill("refused")
    page.get_by_label("Script", exact=True).fill("missing.py")
    page.locator("#launch-script > summary").click()
    page.get_by_label("Arguments").fill("--steps=12\n--kept=yes")
    owner.forgive("status of 422")
    page.get_by_role("button", name="Launch").locator("visible=true").first.click()
    expect(page.locator("#launch-trouble")).to_contain_text("Everything you typed is still here")
    expect(page.get_by_label("Name", exact=True)).to_have_value("refused")
    expect(page.get_by_label("Arguments")).to_have_value("--steps=12\n--kept=yes")


def test_an_answer_that_is_late_is_replaced_by_that_to_what_was_typed_since(owner: Visitor, code: str):
    """The portal is slow: the first question is given up for the second, and the console stays empty."""
    late: list[Route] = []
    page = owner.page
    page.route("**/jobs/launch/preview/", lambda route: route.fallback() if late else late.append(route))
    with page.expect_event("requestfailed", lambda one: "preview" in one.url):
        owner.goto(f"/jobs/launch/?code={code}")
        page.get_by_label("Script", exact=True).fill("missing.py")
    expect(page.locator("#launch-verdict")).to_contain_text("missing.py")


def test_a_late_answer_about_the_form_as_it_was_does_not_undo_a_preset(owner: Visitor):
    """The first question is still on its way when the user chooses another strategy, and would be answered after it."""
    late: list[Route] = []
    page = owner.page
    page.route("**/jobs/launch/preview/", lambda route: route.fallback() if late else late.append(route))
    with page.expect_request("**/jobs/launch/preview/"):
        owner.goto("/jobs/launch/")
    page.locator("label[class=launch-preset]", has_text="TensorFlow servers only").click()
    expect(page.locator("#launch-words")).to_contain_text("your own program drives them")
    late[0].continue_()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1000)  # nothing tells that an answer was not shown
    expect(page.locator("#launch-words")).to_contain_text("your own program drives them")
    expect(page.locator("#launch-verdict")).to_contain_text("until they are stopped")
    expect(page.locator("#launch-yaml")).to_have_value(re.compile("strategy: in_graph"))


def test_a_press_on_launch_counts_though_the_button_moves_under_it(owner: Visitor):
    """The check's answer is taller than what stood there, and may come between the press and the release."""
    page = owner.page
    owner.goto("/jobs/launch/?preset=in_graph")
    page.wait_for_load_state("networkidle")
    launched: list[str] = []
    page.route("**/jobs/launch/", lambda route: (launched.append(route.request.method), route.fulfill(body="taken")))
    box = page.locator("#launch-button").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 150)
    page.mouse.up()
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate("document.getElementById('launch-verdict').style.paddingBottom = '150px'")
    assert launched == [], "a press that was dragged away is none"
    page.mouse.up()
    expect(page.get_by_text("taken")).to_be_visible()
    assert launched == ["POST"]


def test_the_field_that_is_typed_in_keeps_the_keyboard_when_the_form_is_answered(owner: Visitor, code: str):
    """The portal answers with new fields, and their sections are closed at first: nothing typed may go astray."""
    late: list[Route] = []
    page = owner.page
    owner.goto(f"/jobs/launch/?code={code}")
    page.wait_for_load_state("networkidle")
    page.route(
        "**/jobs/launch/", lambda route: late.append(route) if route.request.method == "POST" else route.fallback()
    )
    with page.expect_request(lambda one: one.method == "POST" and one.url.endswith("/jobs/launch/")):
        page.locator("label[class=launch-preset]", has_text="MultiWorkerMirroredStrategy").click()
    page.locator("#launch-resources > summary").click()
    memory = page.locator("[data-of-role=worker]").get_by_label("Memory")
    memory.press("Control+a")
    memory.press_sequentially("25")
    with fields_answered(page):
        late[0].continue_()
    expect(page.get_by_role("radio", name="MultiWorkerMirroredStrategy")).to_be_checked()
    page.keyboard.type("6Mi")
    expect(memory).to_have_value("256Mi")


def test_a_script_from_the_web_for_another_platform_is_met_with_advice(
    owner: Visitor, empty_world: World, tmp_path: Path
):
    """It reads another platform's folders and variables; the page says which of them lead nowhere here."""
    (tmp_path / "train.py").write_text(
        "import os, argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--train', default=os.environ.get('SM_CHANNEL_TRAINING'))\n"
        "parser.add_argument('--model-dir', default='/opt/ml/model')\n"
        "arguments, _ = parser.parse_known_args()\n"
        "print(os.listdir('/kaggle/input'))\n"
    )
    latest = empty_world.client.code.put("from the web", [tmp_path]).latest
    assert latest is not None
    owner.goto(f"/jobs/launch/?code={latest.id}")
    owner.page.get_by_label("Name", exact=True).fill("web")
    owner.page.get_by_label("Script", exact=True).fill("train.py")
    verdict = owner.page.locator("#launch-verdict")
    expect(verdict).to_contain_text("/kaggle/input is a path of another machine")
    expect(verdict).to_contain_text("--model-dir (logs and checkpoints and the model)")
    expect(verdict).to_contain_text("SM_CHANNEL_TRAINING: set on another platform only")


@pytest.fixture(scope="module")
def team(empty_world: World) -> str:
    team = empty_world.client.transport.post("namespaces/", {"slug": "shared", "manager": "ada"})
    for name in ("carol", "dan"):
        empty_world.portal.token_of(name)
    members = f"namespaces/{team['id']}/members/"
    empty_world.client.transport.post(members, {"username": "bob", "role": "viewer"})
    empty_world.client.transport.post(members, {"username": "dan", "role": "viewer"})
    return str(team["id"])


class TestTwoManagers:
    """Each has the page open since before the other's action."""

    @pytest.fixture
    def other(self, owner: Visitor, team: str) -> Page:
        other = owner.another_tab()
        for page in (owner.page, other):
            page.goto(f"{owner.url}/namespaces/{team}/")
        return other

    def test_one_quota_is_changed_by_both_and_neither_change_is_lost(self, owner: Visitor, other: Page):
        for page in (owner.page, other):
            page.get_by_text("Edit limits").click()
            page.get_by_label("Reason", exact=True).fill("Agreed with the team")
        owner.page.get_by_label("GPUs").fill("4")
        owner.page.get_by_role("button", name="Save limits").click()
        expect(owner.page.locator(".toast-note")).to_contain_text("The quota was saved")
        other.get_by_label("CPU cores").fill("3")
        other.get_by_role("button", name="Save limits").click()
        expect(other.get_by_role("alert")).to_contain_text("The limits were changed by another user")
        expect(other.get_by_label("CPU cores")).to_have_value("3")
        expect(other.get_by_label("GPUs")).to_have_value("4")
        other.get_by_role("button", name="Save limits").click()
        expect(other.locator(".toast-note")).to_contain_text("The quota was saved")
        other.get_by_text("Edit limits").click()
        expect(other.get_by_label("CPU cores")).to_have_value("3")
        expect(other.get_by_label("GPUs")).to_have_value("4")

    def test_a_member_who_was_removed_by_one_gets_no_role_from_the_other(self, owner: Visitor, other: Page):
        row = owner.page.locator(".account-row").filter(has_text="bob")
        row.locator("summary").click()
        row.get_by_role("button", name="Remove member").click()
        expect(owner.page.locator(".toast-note")).to_contain_text("bob was removed")
        other.get_by_label("Role of bob").select_option("member")
        other.locator(".account-row").filter(has_text="bob").get_by_role("button", name="Save", exact=True).click()
        expect(other.locator(".toast-note[data-kind=error]")).to_contain_text("not a member")
        expect(other.get_by_label("Role of bob")).to_have_count(0)

    def test_two_who_let_in_the_same_person_are_told_which_role_holds(self, owner: Visitor, other: Page):
        for page, role in ((owner.page, "viewer"), (other, "member")):
            page.get_by_label("Add member").fill("carol")
            page.get_by_label("Role", exact=True).select_option(role)
            page.get_by_role("button", name="Add").click()
        expect(other.locator("#member-errors")).to_contain_text("carol is a viewer already. Change the role instead.")
        expect(other.get_by_label("Role of carol")).to_have_value("viewer")

    def test_two_who_take_out_the_same_member_are_both_told(self, owner: Visitor, other: Page):
        for page in (owner.page, other):
            row = page.locator(".account-row").filter(has_text="dan")
            row.locator("summary").click()
            row.get_by_role("button", name="Remove member").click()
            expect(page.locator(".toast-note")).to_be_visible()
            expect(page.get_by_label("Role of dan")).to_have_count(0)
        expect(other.locator(".toast-note")).to_contain_text("not a member")
