"""An administrator holds a namespace that has no job, by its page, and releases it from the overview; and is told of a
resource that no engine has."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.admin_area import look
from tests.browser.visitor import Visitor
from tests.browser.world import World
from tests.real.scene import until

pytestmark = pytest.mark.long


def test_a_namespace_is_held_on_its_page_and_released_from_the_overview(owner: Visitor, empty_world: World):
    page, transport = owner.page, empty_world.client.transport
    made = transport.post("namespaces/", {"slug": "speech", "manager": "ada"})
    owner.goto(f"/namespaces/{made['id']}/")
    page.get_by_label("Reason for the hold").fill("The invoice is open")
    page.get_by_role("button", name="Hold", exact=True).click()
    expect(page.get_by_text("An administrator holds this namespace")).to_contain_text("The invoice is open")
    expect(page.get_by_role("heading", name="Release the namespace")).to_be_visible()
    look(owner, "held")
    transport.post("queue/actions/", {"action": "drain", "engine": "local", "reason": "A new disk until 18:00"})
    owner.goto("/admin/")
    holds = page.locator("section", has=page.get_by_role("heading", name="Holds"))
    expect(holds.get_by_role("listitem")).to_have_count(2)
    look(owner, "holds")
    holds.get_by_role("button", name="Release namespace speech").click()
    expect(holds.get_by_role("listitem")).to_have_count(1)
    holds.get_by_role("link", name="local").click()
    expect(page).to_have_url(f"{empty_world.url}/admin/engines/local/")
    owner.goto("/admin/")
    holds.get_by_role("button", name="Release engine local").click()
    expect(holds).to_contain_text("Nothing is held")


def test_the_preview_tells_of_a_resource_that_no_engine_has(owner: Visitor, empty_world: World):
    page, transport = owner.page, empty_world.client.transport
    made = transport.post("namespaces/", {"slug": "vision", "manager": "ada"})
    body = {"namespaces": [made["id"]], "changes": {"extended": {"amd.com/gpuu": 2}}, "reason": "x", "preview": True}
    until(lambda: transport.post("quotas/bulk/", body)["unknown"], 90, "a worker to ask the engines")
    owner.goto("/admin/quotas/?search=vision&sort=-cpu.reserved")
    look(owner, "quotas")
    page.get_by_label("Select vision").check()
    page.get_by_label("Other resources").fill("amd.com/gpuu=2")
    page.get_by_label("Reason").fill("New cards")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_role("note")).to_contain_text("amd.com/gpuu: No engine has a resource of this name.")
    look(owner, "preview")
