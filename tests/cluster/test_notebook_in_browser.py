"""A notebook in a pod as users run it: in a real Chromium, from the page Workbench to the last cell, on the second
origin. It launches servers in pods of their own, trains on them and stops them."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor, chromium, lacks_chromium, visitor
from tests.browser.workbench import has_kernel
from tests.cluster.account import Account
from tests.cluster.conftest import portal_on
from tests.cluster.jobs import cleaned_up
from tests.cluster.reach import Cluster
from tests.real.portal import RealPortal
from yardmaster_client import Yardmaster

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(lacks_chromium()), reason=lacks_chromium()),
]

NOTEBOOK = "Starter notebooks/3-drive-tensorflow-servers.ipynb"
STARTS = 120_000
RUNS = 300_000
"""Milliseconds: TensorFlow is loaded in four pods, each with a part of a core."""
WHEEL = "of_the_test-1.0-py3-none-any.whl"
INSTALLS = f"%pip install --quiet --no-index {WHEEL}\nimport of_the_test\nprint(of_the_test.SAYS)"


@pytest.fixture(scope="module")
def local_portal(cluster: Cluster, account: Account, own_address: str) -> Iterator[RealPortal]:
    """Browsers reach it as 127.0.0.1 and its sessions below localhost, pods at another address."""
    image = {"YARDMASTER_KUBERNETES_WORKBENCH_IMAGE": cluster.workbench_image}
    with portal_on(cluster, account, own_address, image, host="0.0.0.0", home_size="64Mi") as running:
        yield running


def test_the_notebook_that_drives_servers_runs_to_its_end_and_installs_a_package(local_portal: RealPortal):
    with (
        Yardmaster(local_portal.url, local_portal.token_of("dora")) as dora,
        chromium() as browser,
        visitor(browser, local_portal.url) as person,
    ):
        person.sign_in("dora")
        _start_jupyter(person)
        page = person.page
        at = page.url.partition("/lab")[0]
        assert re.fullmatch(r"http://[0-9a-f]{32}\.localhost:\d+/w/[0-9a-f-]{36}", at)
        page.goto(f"{at}/lab/tree/{NOTEBOOK}")
        _run_all(page)
        cells = _saved(page, at)
        (job,) = (one for one in dora.jobs.list() if one.name == "servers-of-a-notebook")
        assert (job.phase, job.engine) == ("STOPPED", "kubernetes")
        said = "".join(text for cell in cells for text in _texts(cell))
        assert "/job:worker/replica:0/task:1/device:CPU:0" in said
        for way in (r"step \d+: loss (\d+\.\d+)", r"epoch \d: loss (\d+\.\d+)"):
            losses = [float(one) for one in re.findall(way, said)]
            assert len(losses) >= 4, said
            assert losses[-1] < losses[0], said
        expect(page.locator(f'.jp-OutputArea a[href="{local_portal.url}/jobs/{job.id}/"]').last).to_be_visible()
        cleaned_up(dora, job)

        _put(page, at, WHEEL, _wheel())
        assert _run(page, INSTALLS) == "installed in a pod"
        for one in list(dora.transport.pages("sessions/")):
            dora.transport.post(f"sessions/{one['id']}/stop/")


def _start_jupyter(person: Visitor) -> None:
    """Until its files are shown."""
    person.goto("/workbench/")
    card = person.page.locator("section", has=person.page.get_by_role("heading", name="Your Jupyter"))
    card.get_by_label("Size").select_option("small")
    card.get_by_role("button", name="Start").click()
    person.page.wait_for_url(re.compile(r"/w/[0-9a-f-]+/lab"), timeout=STARTS)
    expect(person.page.locator(".jp-DirListing-content")).to_be_visible(timeout=STARTS)


def _run_all(page: Page) -> None:
    """Until nothing is left to run: of a cell that fails, those after it are not run."""
    has_kernel(page, NOTEBOOK.rpartition("/")[2])
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    last = page.locator(".jp-Notebook .jp-CodeCell").last.locator(".jp-InputPrompt")
    expect(last).to_have_text("[*]:")
    expect(last).not_to_have_text("[*]:", timeout=RUNS)
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()


def _saved(page: Page, at: str) -> list[dict[str, Any]]:
    """The notebook's cells of code, all run without an error, as they lie in the home: the page has what is in view."""
    page.keyboard.press("Control+s")
    expect(page.locator(".lm-DockPanel-tabBar .jp-mod-dirty")).to_have_count(0)
    found = page.evaluate("async (address) => (await fetch(address)).json()", f"{at}/api/contents/{NOTEBOOK}")
    cells = [one for one in found["content"]["cells"] if one["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [one for one in outputs if one["output_type"] == "error"]
    assert [one["execution_count"] for one in cells] == list(range(1, len(cells) + 1))
    return cells


def _texts(cell: dict[str, Any]) -> Iterator[str]:
    for output in cell["outputs"]:
        yield "".join(output.get("text", ""))


def _put(page: Page, at: str, name: str, content: bytes) -> None:
    """A file in the home, as JupyterLab's own page uploads one."""
    file = {"type": "file", "format": "base64", "content": base64.b64encode(content).decode()}
    script = """async ([address, body]) => {
        const token = document.cookie.match(/_xsrf=([^;]+)/)[1];
        return (await fetch(address, { method: "PUT", body, headers: { "X-XSRFToken": token } })).status;
    }"""
    folder = NOTEBOOK.partition("/")[0]
    assert page.evaluate(script, [f"{at}/api/contents/{folder}/{name}", json.dumps(file)]) == 201


def _run(page: Page, code: str) -> str:
    """Run a cell at the notebook's end; the last line that it printed."""
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")
    cell = page.locator(".jp-Notebook .jp-CodeCell").last
    expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"), timeout=STARTS)
    return cell.locator(".jp-OutputArea-output").last.inner_text().strip().splitlines()[-1]


def _wheel() -> bytes:
    """Of a package with one file."""
    info = "of_the_test-1.0.dist-info"
    files = {
        "of_the_test.py": 'SAYS = "installed in a pod"\n',
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: of-the-test\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()
