"""Spark's own pages for a job of the portal, after it has ended."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.visitor import visitor
from tests.browser.workbench import STARTS, session_in, sign_out_elsewhere, status
from tests.browser.world import World
from tests.real.scene import until

pytestmark = [pytest.mark.spark, pytest.mark.linux, pytest.mark.long, pytest.mark.timeout(400)]
SCRIPT = """
from pyspark import SparkContext
print(SparkContext(appName="counted").range(1000).count())
"""
ROLES = {
    "driver": {"replicas": 1, "cpu": 0.2, "memory": "1Gi"},
    "executor": {"replicas": 1, "cpu": 0.2, "memory": "1Gi"},
}


def test_the_stages_of_an_application_are_shown_after_its_end(browser: Browser, empty_world: World, tmp_path) -> None:
    (tmp_path / "main.py").write_text(SCRIPT)
    client = empty_world.client
    code = client.code.put("counted", [tmp_path]).latest
    job = client.jobs.launch(
        {"name": "counted", "strategy": "spark", "code": code.id, "entry_point": "main.py", "roles": ROLES}
    )
    assert client.jobs.wait(job.id, timeout=200).phase == "SUCCEEDED"
    until(lambda: client.jobs.get(job.id).cleaned_up_at, 60, "the executors to be released")
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        ada.goto(f"/jobs/{job.id}/")
        ada.page.get_by_role("button", name="Open Spark history").click()
        ada.page.wait_for_url(re.compile(r"/w/[0-9a-f-]+/"), timeout=STARTS)
        ada.forgive("favicon")
        application = ada.page.get_by_role("link", name=re.compile("app-"))
        expect(application.first).to_be_visible(timeout=STARTS)
        application.first.click()
        expect(ada.page.get_by_text("Completed Jobs").first).to_be_visible(timeout=STARTS)
        expect(ada.page.get_by_text("counted").first).to_be_visible()
        assert f"/w/{session_in(ada.page)}/history/" in ada.page.url
        address = ada.page.url
        sign_out_elsewhere(ada)
        ada.forgive("401")
        assert status(ada.page, address) == 401
