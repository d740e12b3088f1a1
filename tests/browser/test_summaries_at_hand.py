"""The summaries on the page of a job that had none when it was opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.browser.world import World, script
from tests.real.scene import until
from tests.unit.runner.event_writer import event, field, framed, varint

WRITES_A_TEXT = """
import os, shutil, time
print("ready", flush=True)
while not os.path.exists("{go}"):
    time.sleep(0.1)
shutil.copy("text.bin", os.path.join(os.environ["LOG_DIR"], "events.out.tfevents.1"))
print("written", flush=True)
time.sleep(600)
"""
_TENSOR = b"\x08" + varint(7) + field(8, b"as it was")
TEXT = field(1, b"note") + field(8, _TENSOR) + field(9, field(1, field(1, b"text")))


@pytest.mark.long
def test_they_come_to_an_open_page_with_its_first_summary(owner: Visitor, empty_world: World, tmp_path: Path):
    code_folder, go = tmp_path / "code", tmp_path / "go"
    code_folder.mkdir()
    (code_folder / "writer.py").write_text(WRITES_A_TEXT.format(go=go))
    (code_folder / "text.bin").write_bytes(framed(event(step=3, summary=[TEXT])))
    code = empty_world.client.code.put("writers", [code_folder]).latest
    assert code is not None
    jobs = empty_world.client.jobs
    job = jobs.launch(script(empty_world, "writes", "writer.py", code=code.id))
    until(lambda: any(line.text == "ready" for line in jobs.lines(job.id)), 60, "its first line")
    owner.goto(f"/jobs/{job.id}/")
    part = owner.page.locator("#job-summaries")
    expect(part).to_have_attribute("data-none", "")
    go.write_bytes(b"")
    part.scroll_into_view_if_needed()
    expect(part).to_contain_text("as it was", timeout=60_000)
    jobs.stop(job.id)
