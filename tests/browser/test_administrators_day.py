"""An administrator's whole day by clicks alone: a new team of ten with quotas, a stuck queue, a member who leaves, and
the report of the month. With real jobs on the local engine, and members in browsers of their own."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import Error as PlaywrightError

from tests.browser.admin_area import accepted, administration, downloaded, look, place, reloaded
from tests.browser.visitor import Visitor, visitor
from tests.browser.world import QUICK
from tests.real.portal import WHOLE, RealPortal, real_portal
from tests.real.scene import until
from yardmaster_client import Yardmaster

pytestmark = pytest.mark.timeout(1_500)
PEOPLE = ("grace", "linus", "mary", "alan", "edsger", "barbara", "donald", "radia", "tim", "margaret")
RUNS = 120_000
"""Milliseconds that a job may take to start on a busy machine."""
BEFORE = 10
"""Jobs of yesterday: without so many no wait is estimated."""
SCRIPTS = {
    "sleeper.py": "import time\nprint('begun', flush=True)\ntime.sleep(900)\n",
    "short.py": "print('done', flush=True)\n",
}
TINY = {"cpu": 0.1, "memory": "128Mi"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code that the team uploads."""
    found = tmp_path_factory.mktemp("material") / "sleeper"
    found.mkdir()
    for name, text in SCRIPTS.items():
        (found / name).write_text(text)
    return found


@pytest.fixture(scope="module")
def portal(folder: Path) -> Iterator[RealPortal]:
    """A portal on which everyone may use the local engine, with Ada, its administrator, and yesterday's jobs."""
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-day-") as home,
        real_portal(Path(home), WHOLE, {**QUICK, "YARDMASTER_LOCAL_ENGINE_FOR_ALL": "1"}) as one,
        Yardmaster(one.url, one.token_of("ada", is_staff=True)) as client,
    ):
        _yesterday(client, folder)
        yield one
        for job in client.jobs.list():
            if not job.is_final:
                client.jobs.stop(job.id)
        until(lambda: all(job.cleaned_up_at for job in client.jobs.list()), 90, "all jobs to be cleaned up")


def _yesterday(client: Yardmaster, folder: Path) -> None:
    version = client.code.put("short", [folder]).latest
    assert version is not None
    spec = {
        "strategy": "single", "roles": {"worker": TINY}, "code": str(version.id), "entry_point": "short.py",
        "paths": {"data_flag": "", "log_flag": ""}, "grace_period": 1, "reclaim_delay": 1,
    }  # fmt: skip
    jobs = [client.jobs.launch({**spec, "name": f"short-{number}"}) for number in range(BEFORE)]
    for one in jobs:
        client.jobs.wait(one.id, timeout=240)


@pytest.mark.long
def test_an_administrators_day_without_a_shell(browser: Browser, portal: RealPortal, folder: Path, tmp_path: Path):
    with visitor(browser, portal.url, accept_downloads=True) as admin:
        admin.sign_in("ada")
        administration(admin.page)
        links = _a_new_team_of_ten(admin)
        _its_quota_and_budget(admin)
        _its_share(admin)
        _a_class_is_reserved(admin)
        _a_preset(admin)
        with accepted(browser, portal, links, "grace") as grace, accepted(browser, portal, links, "linus") as linus:
            for name in PEOPLE[2:]:
                with accepted(browser, portal, links, name):
                    pass
            _all_ten_are_in(admin)
            _upload(grace, folder)
            first = _launch(grace, "first")
            second = _launch(linus, "second", runs=False)
            _too_large(grace)
            _why_it_waits(linus, second)
            _a_stuck_queue(admin, linus, second)
            expect(linus.page.locator("#job-status[data-phase=RUNNING]")).to_be_visible(timeout=RUNS)
            _linus_leaves(admin, linus, second)
            grace.goto(f"/jobs/{first}/")
            expect(grace.page.locator("#job-status[data-phase=RUNNING]")).to_be_visible()
            _the_month(admin, tmp_path)
            _the_audit(admin, tmp_path)


# --- A new team of ten ------------------------------------------------------------------------------------------------


def _a_new_team_of_ten(admin: Visitor) -> dict[str, str]:
    """Each one's link."""
    page = admin.page
    place(page, "Teams")
    page.get_by_role("link", name="New team").first.click()
    page.get_by_label("Short name").fill("speech")
    page.get_by_label("Title").fill("Speech group")
    page.get_by_role("button", name="Create team").click()
    expect(page.get_by_role("heading", name="speech", level=1)).to_be_visible()
    page.get_by_role("link", name="Invite people").click()
    addresses = [f"{name}@example.org" for name in PEOPLE]
    page.get_by_label("E-mail addresses").fill("\n".join([*addresses[:4], "edsger.example.org", *addresses[5:]]))
    page.get_by_role("button", name="Create invitations").click()
    expect(page.get_by_text("Line 5, edsger.example.org: This is not an e-mail address.")).to_be_visible()
    look(admin, "invitations-wrong")
    page.get_by_label("E-mail addresses").fill("\n".join(addresses))
    page.get_by_role("button", name="Create invitations").click()
    expect(page.get_by_role("heading", name="10 invitations created")).to_be_visible()
    look(admin, "invitations-made")
    text = page.locator(".token-made code").inner_text()
    links = {line.split("@")[0]: line.split()[1] for line in text.splitlines()}
    assert tuple(links) == PEOPLE
    return links


def _its_quota_and_budget(admin: Visitor) -> None:
    page = admin.page
    page.get_by_role("link", name="speech").first.click()
    page.get_by_text("Edit limits").click()
    page.get_by_label("CPU cores", exact=True).fill("2")
    page.get_by_label("Memory", exact=True).fill("4Gi")
    page.get_by_label("Concurrent jobs", exact=True).fill("1")
    page.get_by_label("Reason", exact=True).fill("A new team")
    page.get_by_role("button", name="Save limits").click()
    expect(page.locator("#quota-title").locator("xpath=../..")).to_contain_text("of 2")
    page.get_by_role("link", name="Budget", exact=True).click()
    page.get_by_label("CPU hours", exact=True).fill("2")
    page.get_by_role("button", name="Save budget").click()
    expect(page.locator("#toasts")).to_contain_text("The budget was saved.")


def _its_share(admin: Visitor) -> None:
    page = admin.page
    place(page, "Shares")
    group = page.locator("form").filter(has=page.get_by_role("button", name="Add group"))
    group.get_by_label("Name", exact=True).fill("research")
    group.get_by_label("Weight").fill("3")
    group.get_by_label("Reason").fill("Research has three parts")
    group.get_by_role("button", name="Add group").click()
    expect(page.locator("#toasts")).to_contain_text("Added the group research.")
    within = page.locator("form").filter(has=page.get_by_role("button", name="Add namespace"))
    within.get_by_label("Namespace").fill("speech")
    within.get_by_label("Within the group").select_option("research")
    within.get_by_label("Reason").fill("A new team")
    within.get_by_role("button", name="Add namespace").click()
    expect(page.get_by_role("row").filter(has_text="speech")).to_be_visible()
    look(admin, "shares")


def _a_class_is_reserved(admin: Visitor) -> None:
    """For the group: its jobs are kept from nothing by it."""
    page, day = admin.page, datetime.now(UTC) + timedelta(days=7)
    admin.forgive("status of 400")
    place(page, "Reservations")
    page.get_by_label("Or a group").select_option("research")
    page.get_by_label("CPU cores").fill("1")
    page.get_by_label("From (UTC)").fill(f"{day:%Y-%m-%dT08:00}")
    page.get_by_label("To (UTC)").fill(f"{day:%Y-%m-%dT10:00}")
    page.get_by_label("Other resources").fill("gpu.example/slice=2")
    page.get_by_role("button", name="Reserve", exact=True).click()
    expect(page.get_by_text("local has 0 of gpu.example/slice")).to_be_visible()
    look(admin, "reservations-wrong")
    page.get_by_label("Other resources").fill("")
    page.get_by_role("button", name="Reserve", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="group research")).to_contain_text("1 core")
    look(admin, "reservations")


def _a_preset(admin: Visitor) -> None:
    page = admin.page
    place(page, "Presets")
    page.get_by_role("link", name="Add preset").click()
    page.locator("#f-name").fill("Small")
    page.locator("#f-description").fill("One worker, half a core")
    page.get_by_label("Training strategy").select_option("single")
    worker = page.get_by_role("group", name="Worker")
    worker.get_by_label("Tasks").fill("1")
    worker.get_by_label("CPU").fill("0.5")
    worker.get_by_label("Memory").fill("256Mi")
    page.get_by_role("button", name="Save preset").click()
    expect(page.get_by_role("row").filter(has_text="Small")).to_contain_text("1 worker")


def _all_ten_are_in(admin: Visitor) -> None:
    page = admin.page
    place(page, "Teams")
    expect(page.get_by_role("row").filter(has_text="speech").locator("td").nth(2)).to_have_text("11")
    page.get_by_role("link", name="speech").click()
    for name in PEOPLE:
        expect(page.get_by_label(f"Role of {name}")).to_have_value("member")
    look(admin, "team")


# --- Jobs -------------------------------------------------------------------------------------------------------------


def _upload(grace: Visitor, folder: Path) -> None:
    page = grace.page
    grace.goto("/code/upload/?namespace=speech")
    page.locator("#pick-folder").set_input_files(folder)
    page.locator("#name").fill("sleeper")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="sleeper")).to_be_visible()


def _fill(one: Visitor, name: str) -> None:
    page = one.page
    one.goto("/code/?namespace=speech")
    page.get_by_role("link", name="sleeper").first.click()
    page.get_by_role("link", name=re.compile("Launch")).last.click()
    expect(page.get_by_role("heading", name="Launch a job")).to_be_visible()
    page.locator(".launch-filling").filter(has_text="Small").click()
    expect(page.locator(".launch-filling").filter(has_text="Small")).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Script", exact=True).fill("sleeper.py")
    page.get_by_label("Script", exact=True).blur()


def _launch(one: Visitor, name: str, *, runs: bool = True) -> str:
    page = one.page
    _fill(one, name)
    expect(page.locator("#launch-verdict")).to_contain_text("Fits now" if runs else "quota")
    page.get_by_role("button", name="Launch").locator("visible=true").first.click()
    phase = "RUNNING" if runs else "QUEUED"
    expect(page.locator(f"#job-status[data-phase={phase}]")).to_be_visible(timeout=RUNS)
    return page.url.rstrip("/").rpartition("/")[2]


def _too_large(grace: Visitor) -> None:
    """Larger than the quota: the page says so, and it is queued all the same."""
    page = grace.page
    grace.forgive("status of 409")
    _fill(grace, "too large")
    if page.locator("#launch-resources").get_attribute("open") is None:
        page.locator("#launch-resources > summary").click()
    page.locator("[data-of-role=worker]").get_by_label("CPU").fill("64")
    page.locator("[data-of-role=worker]").get_by_label("CPU").blur()
    expect(page.locator("#launch-verdict")).to_contain_text(re.compile("never", re.IGNORECASE))
    page.get_by_role("button", name="Launch").locator("visible=true").first.click()
    page.locator("#launch-anyway").click()
    expect(page.locator("#job-status")).to_contain_text("This job can never start.")


def _why_it_waits(linus: Visitor, second: str) -> None:
    page = linus.page
    linus.goto(f"/jobs/{second}/")
    expect(page.locator("#job-status")).to_contain_text("Not enough namespace quota")
    expect(page.get_by_role("link", name="first")).to_be_visible()
    reloaded(page, "Estimated start:")
    look(linus, "why")


def _a_stuck_queue(admin: Visitor, linus: Visitor, second: str) -> None:
    """Who waits for what; hold, release, move, drain, more quota, end of the drain; and the one that never fits."""
    page = admin.page
    administration(page)
    place(page, "Queue")
    row = page.get_by_role("row").filter(has_text="linus in speech")
    expect(row).to_contain_text("held by first")
    reloaded(page, re.compile("starts (in|within|between|about|now|at|after)"))
    look(admin, "queue")
    _act(page, "second", "Hold", "Wait for the demo")
    expect(row).to_contain_text("job held")
    reloaded(linus.page, "Wait for the demo")
    _act(page, "second", "Release")
    _act(page, "second", "Move to the front", "The demo is over")
    reloaded(linus.page, "Not enough namespace quota")
    page.get_by_label("Reason for the drain").fill("A new disk")
    page.get_by_role("button", name="Drain local").click()
    expect(page.get_by_text("Drained:")).to_be_visible()
    reloaded(linus.page, "A new disk")
    look(linus, "drained")
    row.get_by_role("link", name="speech").click()
    page.get_by_text("Edit limits").click()
    page.get_by_label("Concurrent jobs", exact=True).fill("3")
    page.get_by_label("Reason", exact=True).fill("The queue is stuck")
    page.get_by_role("button", name="Save limits").click()
    page.locator("#holders-title").scroll_into_view_if_needed()  # fetched when it is seen
    expect(page.get_by_role("heading", name="Quota history")).to_be_visible()
    expect(page.get_by_text("The queue is stuck")).to_be_visible()
    administration(page)
    expect(page.get_by_text("A new disk")).to_be_visible()
    place(page, "Queue")
    _act(page, "too large", "Stop", "It never fits")
    page.get_by_role("button", name="End the drain of local").click()
    expect(page.get_by_role("button", name="Drain local")).to_be_visible()


def _act(page: Page, job: str, action: str, reason: str = "") -> None:
    page.get_by_label(f"Select {job}").check()
    page.get_by_label("Action on selected jobs").select_option(action)
    page.get_by_label("Reason", exact=True).fill(reason)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#toasts")).to_contain_text(f"{action}: done.")


# --- A member leaves, and the month ends ------------------------------------------------------------------------------


def _is_asked_to_sign_in(one: Visitor) -> None:
    """On the next page. The page that is open may notice it first and lead there itself: of two navigations at once the
    browser drops one, with an error or without, so that what is shown in the end tells."""
    with contextlib.suppress(PlaywrightError):
        one.page.goto(f"{one.url}/account/", wait_until="commit", timeout=10_000)
    expect(one.page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()


def _linus_leaves(admin: Visitor, linus: Visitor, second: str) -> None:
    page = admin.page
    place(page, "Users")
    page.get_by_label("Name or e-mail").fill("linus")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="linus").click()
    look(admin, "user")
    page.get_by_text("Sign out everywhere", exact=True).first.click()
    page.get_by_role("button", name="Sign out everywhere", exact=True).click()
    linus.forgive("status of 4|WebSocket|401|403")
    expect(page.locator("#toasts")).to_contain_text("signed out")
    _is_asked_to_sign_in(linus)
    page.get_by_role("link", name=re.compile("Remove user")).click()
    expect(page.get_by_text("1 job that the user launched in a team stays there")).to_be_visible()
    look(admin, "remove")
    page.get_by_label("Type linus to confirm").fill("linus")
    page.get_by_role("button", name="Remove user").click()
    expect(page.get_by_role("heading", name="linus", level=1)).to_be_visible()
    expect(page.get_by_role("heading", name="Ended")).to_be_visible(timeout=RUNS)
    look(admin, "removed")
    admin.goto(f"/jobs/{second}/")
    expect(page.locator("#job-status[data-phase=RUNNING]")).to_be_visible()
    page.locator("#job-stop").click()
    page.locator("#job-stop-sure").click()
    expect(page.locator("#job-status[data-phase=STOPPED]")).to_be_visible(timeout=RUNS)


def _the_month(admin: Visitor, tmp_path: Path) -> None:
    page, month = admin.page, datetime.now(UTC)
    administration(page)
    place(page, "Usage")
    page.get_by_role("link", name=f"{month:%B %Y}").click()
    table = page.get_by_role("region", name="Namespaces")
    expect(table.get_by_role("row").filter(has_text="speech")).to_contain_text("of 2.0")
    users = page.get_by_role("region", name="Users")
    expect(users.get_by_role("row").filter(has_text="grace")).to_be_visible()
    expect(users.get_by_role("row").filter(has_text="linus")).to_be_visible()
    look(admin, "month")
    rows = downloaded(page, "CSV by namespace and user", tmp_path / "users.csv")
    used = {(one["namespace"], one["user"]): float(one["cpu_hours"]) for one in rows}
    assert used["speech", "grace"] > 0
    assert used["speech", "linus"] > 0
    assert used["total", ""] == pytest.approx(sum(hours for key, hours in used.items() if key[1]), abs=0.01)
    spaces = {one["namespace"]: one for one in downloaded(page, "CSV by namespace", tmp_path / "month.csv")}
    assert spaces["speech"]["budget_percent"].isdigit()
    assert spaces["ada"]["budget_percent"] == ""


def _the_audit(admin: Visitor, tmp_path: Path) -> None:
    """What was done today is there, and found by namespace, by words, and in a file."""
    page = admin.page
    place(page, "Audit")
    page.get_by_label("Namespace", exact=True).fill("speech")
    page.get_by_label("Words in the details").fill("stuck")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("The queue is stuck").first).to_be_visible()
    page.get_by_label("Namespace", exact=True).fill("")
    page.get_by_label("Words in the details").fill("disk")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("A new disk").first).to_be_visible()
    page.get_by_label("Namespace", exact=True).fill("speech")
    page.get_by_label("Words in the details").fill("")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_label("Namespace", exact=True)).to_have_value("speech")
    expect(page.get_by_text("A new disk")).to_have_count(0)
    rows = downloaded(page, "CSV", tmp_path / "audit.csv")
    found = {one["action"] for one in rows}
    wanted = {
        "namespace.create", "invitation.create", "invitation.use", "quota.set", "budget.set", "share.create",
        "job.create", "job.stop", "job.move",
    }  # fmt: skip
    assert wanted <= found, sorted(wanted - found)
