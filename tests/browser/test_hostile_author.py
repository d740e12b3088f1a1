"""Somebody whose names are quotes, tags, right-to-left marks, emoji and thousands of characters harms no page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, StorageState

from tests.browser.visitor import Look, Visitor, visitor
from tests.browser.world import World, script

NASTY = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}{% csrf_token %}`${alert(3)}` \u202egpj.exe\u2066 \U0001f469\u200d\U0001f52c e\u0301\u0301\u0301"
LOOKS = (Look(1440, "light"), Look(390, "dark"))
TALK = f"""
print({NASTY!r} * 3)
print("x" * 10_000)
raise RuntimeError({NASTY!r})
"""


def long(text: str, most: int) -> str:
    return (text * (most // len(text) + 1))[:most]


@pytest.fixture(scope="module")
def places(empty_world: World, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A dataset, code, a job, a profile, tokens and a team with nasty names; the pages that show them."""
    client, transport = empty_world.client, empty_world.client.transport
    folder = tmp_path_factory.mktemp("nasty")
    (folder / "main.py").write_text(TALK)
    nasty_file = "<b onclick=alert(4)>&quot;\u202efdp.csv"
    (folder / nasty_file).write_text(f"{NASTY},b\n=1+1,{NASTY}\n")
    (folder / "bad \U0001f4a9.md").write_text(long(NASTY, 10_000))
    data = client.datasets.put("nasty", [folder])
    code = client.code.put("nasty", [folder])
    for kind, item in (("datasets", data), ("code", code)):
        transport.patch(f"{kind}/{item.id}/", {"name": long(NASTY, 100), "description": long(NASTY, 10_000)})
    assert code.latest is not None
    assert data.latest is not None
    spec = script(
        empty_world, long(NASTY, 100), "main.py", code=code.latest.id, arguments=[NASTY, long(NASTY, 4_000)],
        environment={"NASTY": long(NASTY, 4_000)}, inputs=[{"dataset_version": data.latest.id}],
    )  # fmt: skip
    job = client.jobs.launch(spec)
    client.jobs.wait(job.id, timeout=60)
    client.token_create(long(NASTY, 100), ["read"])
    team = transport.post("namespaces/", {"slug": "nasty", "title": long(NASTY, 100)})
    return [
        "/", "/jobs/", f"/jobs/{job.id}/", f"/jobs/{job.id}/logs/", f"/jobs/{job.id}/delete/", f"/jobs/launch/?from={job.id}",
        f"/jobs/compare/?job={job.id}", "/datasets/", f"/datasets/{data.id}/?path=main.py", f"/datasets/{data.id}/edit/",
        f"/datasets/{data.id}/?path={nasty_file.replace('&', '%26').replace(';', '%3B')}", f"/datasets/{data.id}/delete/",
        "/code/", f"/code/{code.id}/?path=main.py", f"/code/{code.id}/delete/", "/account/tokens/", "/namespaces/",
        f"/namespaces/{team['id']}/", "/find/?q=script", f"/jobs/?search={'%3Cscript%3E'}",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def state(browser: Browser, empty_world: World) -> StorageState:
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        ada.goto("/account/")
        ada.page.locator("[name=first_name]").fill(NASTY)
        ada.page.get_by_role("button", name="Save").first.click()
        return ada.context.storage_state()


@pytest.fixture(params=LOOKS, ids=str)
def reader(
    request: pytest.FixtureRequest, browser: Browser, empty_world: World, state: StorageState
) -> Iterator[Visitor]:
    with visitor(browser, empty_world.url, request.param, storage_state=state) as one:
        yield one


def test_no_page_runs_what_it_shows_or_breaks(reader: Visitor, places: list[str]):
    """No dialog opens, no element or attribute of a name is in the page, the policy is not even needed, and it fits."""
    opened: list[str] = []

    def note(dialog: Dialog) -> None:
        opened.append(dialog.message)
        dialog.dismiss()

    reader.page.on("dialog", note)
    for place in places:
        reader.goto(place)
        page = reader.page
        page.wait_for_load_state("networkidle")
        assert page.locator("[onerror], [onclick], img[src=x], main script").count() == 0, place
        assert "49" not in page.title(), place
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{place} is wider than the screen"
        reader.assert_content()
    assert opened == []
