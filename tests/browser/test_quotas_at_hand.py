"""An administrator's work with quotas, by clicks alone: a stuck queue is freed, ten namespaces are changed at once, and
a preset fills in the launch form."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.browser.world import World, script
from tests.real.scene import until

pytestmark = pytest.mark.long

SLEEPER = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
def team(empty_world: World, tmp_path: Path) -> dict[str, str]:
    """A team that may run one job, runs one, and has one waiting."""
    one, transport = empty_world, empty_world.client.transport
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    version = one.client.code.put("sleeper", [tmp_path / "sleeper.py"]).latest
    assert version is not None
    made = transport.post("namespaces/", {"slug": "speech", "manager": "ada"})
    limits = {"cpu": None, "memory": None, "gpus": None, "storage": None, "running_jobs": 1}
    transport.put(f"namespaces/{made['id']}/quota/", limits)
    spec = script(one, "holds the quota", "sleeper.py", code=str(version.id))
    runs = one.client.jobs.launch(spec, namespace="speech")
    until(lambda: one.client.jobs.get(runs.id).phase == "RUNNING", 60, "the first job to run")
    waits = one.client.jobs.launch({**spec, "name": "waits for quota"}, namespace="speech")
    until(lambda: one.client.jobs.get(waits.id).reason, 30, "the second job to be decided")
    return {"id": made["id"], "waits": waits.id, "runs": runs.id}


def seen(visitor: Visitor, name: str) -> None:
    """A picture for who looks at the pages, where a folder is named."""
    if folder := os.environ.get("YARDMASTER_PICTURES"):
        visitor.page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_a_stuck_queue_is_freed_by_a_higher_limit(empty_world: World, owner: Visitor, team: dict[str, str]):
    page = owner.page
    owner.goto("/admin/")
    page.get_by_role("link", name="Queue", exact=True).click()
    row = page.get_by_role("row").filter(has_text="waits for quota")
    expect(row).to_contain_text("held by holds the quota")
    expect(row).to_contain_text("speech")
    page.get_by_role("link", name="Quotas", exact=True).click()
    page.locator("#quota-search").fill("speech")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Select speech").check()
    page.get_by_label("Concurrent jobs", exact=True).fill("2")
    page.locator("#id_reason").fill("The queue is stuck")
    seen(owner, "quotas")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_text("Concurrent jobs: 1 → 2")).to_be_visible()
    seen(owner, "preview")
    page.get_by_role("button", name="Apply for 1 namespace").click()
    expect(page.get_by_text("Quotas changed: 1.")).to_be_visible()
    until(lambda: empty_world.client.jobs.get(team["waits"]).phase == "RUNNING", 60, "the waiting job to run")
    owner.goto(f"/jobs/{team['waits']}/")
    expect(page.get_by_text("Running for")).to_be_visible()
    assert empty_world.client.jobs.get(team["runs"]).phase == "RUNNING"
    owner.goto(f"/namespaces/{team['id']}/")
    page.locator("#holders-title").scroll_into_view_if_needed()  # fetched when it is seen
    expect(page.get_by_text("The queue is stuck")).to_be_visible()


def test_ten_namespaces_are_changed_at_once_and_for_a_while(empty_world: World, owner: Visitor):
    transport, page = empty_world.client.transport, owner.page
    labs = [transport.post("namespaces/", {"slug": f"lab-{number}", "manager": "ada"}) for number in range(10)]
    owner.goto("/admin/")
    page.get_by_role("link", name="Quotas", exact=True).click()
    page.locator("#quota-search").fill("lab-")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("All 10 that match").check()
    page.get_by_label("CPU cores", exact=True).fill("8")
    page.get_by_label("Memory", exact=True).fill("32Gi")
    page.locator("#id_reason").fill("A course begins")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_role("heading", name="10 namespaces to change")).to_be_visible()
    page.get_by_role("button", name="Apply for 10 namespaces").click()
    expect(page.get_by_text("Quotas changed: 10.")).to_be_visible()
    hard = [transport.get(f"namespaces/{one['id']}/quota/")["hard"] for one in labs]
    assert {(one["cpu"], one["memory"]) for one in hard} == {(8, 32 << 30)}
    page.get_by_label("Select lab-3").check()
    page.get_by_label("CPU cores", exact=True).fill("16")
    page.get_by_label("Until (UTC)").fill("2001-01-01T18:00")
    page.locator("#id_reason").fill("The deadline of lab 3")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_text("The end is in the past.")).to_be_visible()
    page.get_by_label("Until (UTC)").fill(later())
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_text("then the limits are as before")).to_be_visible()
    seen(owner, "schedule")
    page.get_by_role("button", name="Schedule for 1 namespace").click()
    page.get_by_role("link", name="Scheduled changes").click()
    expect(page.get_by_role("row").filter(has_text="lab-3")).to_contain_text("in force")
    seen(owner, "schedules")
    page.get_by_role("link", name="lab-3").click()
    expect(page.get_by_text(re.compile(r"CPU cores: 16 until .* UTC, then 8"))).to_be_visible()
    seen(owner, "namespace")
    page.get_by_role("link", name="Show or cancel").click()
    page.get_by_role("button", name="Cancel the change of lab-3").click()
    expect(page.get_by_role("heading", name="No scheduled changes")).to_be_visible()
    assert transport.get(f"namespaces/{labs[3]['id']}/quota/")["hard"]["cpu"] == 8
    owner.goto("/admin/quotas/defaults/")
    seen(owner, "defaults")


def later() -> str:
    return f"{datetime.now(UTC) + timedelta(days=7):%Y-%m-%dT18:00}"


def test_a_preset_fills_in_the_launch_form_without_a_new_page(owner: Visitor):
    page = owner.page
    owner.goto("/admin/")
    page.get_by_role("link", name="Presets", exact=True).click()
    page.get_by_role("link", name="Add preset").click()
    page.locator("#f-name").fill("Small")
    page.locator("#f-description").fill("1 PS, 3 workers, 2 CPU")
    worker, server = (page.get_by_role("group", name=name) for name in ("Worker", "Parameter server"))
    for group, count in ((worker, "3"), (server, "1")):
        group.get_by_label("Tasks").fill(count)
        group.get_by_label("CPU").fill("2")
    seen(owner, "preset")
    page.get_by_role("button", name="Save preset").click()
    expect(page.get_by_role("row").filter(has_text="Small")).to_contain_text("3 worker")
    seen(owner, "presets")
    owner.goto("/jobs/launch/")
    page.locator("#f-name").fill("mine")
    page.evaluate("window.isTheSamePage = true")
    page.locator(".launch-filling").click()
    expect(page.locator(".launch-filling")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[name=roles-worker-replicas]")).to_have_value("3")
    expect(page.locator("[name=roles-worker-cpu]")).to_have_value("2")
    expect(page.locator("#f-name")).to_have_value("mine")
    assert page.evaluate("window.isTheSamePage")
    seen(owner, "launch")
