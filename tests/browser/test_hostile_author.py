"""A user whose names are quotes, tags, right-to-left marks, emoji and thousands of characters harms no page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Dialog, StorageState, expect

from tests.browser.visitor import DESK_FIRST, Visitor, visitor
from tests.browser.world import World, script

NAME = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}{% csrf_token %}`${alert(3)}` e\u0301\u0301"
NASTY = f"{NAME} \u202egpj.exe\u2066 \U0001f469\u200d\U0001f52c"
# Names and paths of what is stored may have no invisible signs, and that is all.
PATH = "<b onclick=alert(4)>&quot;'\"{{ 7*7 }} \u05d0\u05d1 \U0001f4a9 " + "endless" * 20 + ".csv"
TALK = f"""
print({NASTY!r} * 3)
print("x" * 10_000)
raise RuntimeError({NASTY!r})
"""
# What is on the screen, and what is in its fields.
_SEEN = """() => document.querySelector("main").innerText
    + [...document.querySelectorAll("main :is(input, textarea)")].map((one) => one.value).join(" ")"""
# Elements that are seen and in which a right-to-left mark turns around more than the name that it is in.
_TURNED = """() => {
    const fenced = "bdi, pre, code, textarea, option, .log-text, [hidden], .visually-hidden";
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode())
        if (node.data.includes("\\u202e") && !node.parentElement.closest(fenced))
            found.push(node.parentElement.outerHTML.slice(0, 160));
    return found;
}"""
# What sticks out of the page on the right.
_TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 120))"""


def long(text: str, most: int) -> str:
    return (text * (most // len(text) + 1))[:most]


@pytest.fixture(scope="module")
def places(empty_world: World, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A dataset, code, a job, tokens and a team with nasty names; the pages that show them."""
    client, transport = empty_world.client, empty_world.client.transport
    folder = tmp_path_factory.mktemp("nasty")
    (folder / "main.py").write_text(TALK)
    (folder / PATH).write_text(f"{NASTY},b\n=1+1,{NASTY}\n")
    (folder / "bad \U0001f4a9.md").write_text(long(NASTY, 10_000))
    data = client.datasets.put("nasty", [folder])
    code = client.code.put("nasty", [folder])
    (folder / "main.py").write_text(TALK + NASTY)
    client.datasets.put("nasty", [folder], note=long(NASTY, 1000))
    client.code.put("nasty", [folder], note=long(NASTY, 1000))
    for kind, item in (("datasets", data), ("code", code)):
        transport.patch(f"{kind}/{item.id}/", {"name": long(NAME, 100), "description": long(NASTY, 10_000)})
    assert code.latest is not None
    assert data.latest is not None
    spec = script(
        empty_world, long(NAME, 100), "main.py", code=code.latest.id, arguments=[NASTY, long(NASTY, 4_000)],
        environment={"NASTY": long(NASTY, 4_000)}, inputs=[{"dataset_version": data.latest.id}],
    )  # fmt: skip
    job = client.jobs.launch(spec)
    client.jobs.wait(job.id, timeout=60)
    client.token_create(long(NASTY, 100), ["read"])
    team = transport.post("namespaces/", {"slug": "nasty", "title": long(NASTY, 100)})
    jobs, sets, codes = f"/jobs/{job.id}/", f"/datasets/{data.id}/", f"/code/{code.id}/"
    return [
        *("/", "/jobs/", jobs, f"{jobs}logs/", f"{jobs}delete/", f"/jobs/launch/?from={job.id}"),
        *(f"/jobs/compare/?job={job.id}", f"/jobs/?search={quote('<script>')}"),
        *("/datasets/", f"{sets}?path=main.py", f"{sets}?path={quote(PATH)}", f"{sets}changes/"),
        *(f"{sets}edit/", f"{sets}delete/", f"{sets}upload/"),
        *("/code/", f"{codes}?path=main.py", f"{codes}?path={quote(PATH)}", f"{codes}compare/", f"{codes}delete/"),
        *("/account/", "/account/tokens/", "/namespaces/", f"/namespaces/{team['id']}/", "/find/?q=script"),
    ]


@pytest.fixture(scope="module")
def state(browser: Browser, empty_world: World) -> StorageState:
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        ada.goto("/account/")
        ada.page.locator("[name=first_name]").fill(NASTY)
        ada.page.get_by_role("button", name="Save").first.click()
        return ada.context.storage_state()


@pytest.fixture(params=DESK_FIRST, ids=str)
def reader(
    request: pytest.FixtureRequest, browser: Browser, empty_world: World, state: StorageState
) -> Iterator[Visitor]:
    with visitor(browser, empty_world.url, request.param, storage_state=state) as one:
        yield one


def test_no_page_runs_what_it_shows_or_breaks(reader: Visitor, places: list[str]):
    """Each shows names as they are: no dialog, no element of a name, nothing for the policy to stop; and it fits."""
    opened: list[str] = []

    def note(dialog: Dialog) -> None:
        opened.append(dialog.message)
        dialog.dismiss()

    page, wrong = reader.page, {}
    page.on("dialog", note)
    for place in places:
        reader.goto(place)
        page.wait_for_load_state("networkidle")
        made = page.locator("[onerror], [onclick], img[src=x], main script, b b").count()
        seen = "onerror=alert(1)" in page.evaluate(_SEEN)
        found = page.evaluate(_TOO_WIDE), page.evaluate(_TURNED), made, seen
        if found != ([], [], 0, True):
            wrong[place] = found
    reader.assert_content()
    assert opened == []
    assert wrong == {}, "\n".join(f"{place}: {found}" for place, found in wrong.items())


def test_a_file_of_a_nasty_name_is_text_on_the_page_that_refuses_it(reader: Visitor, tmp_path: Path):
    page, name = reader.page, long(NASTY.replace("/", ""), 200)
    (tmp_path / name).write_text("a,b\n1,2\n")
    reader.goto("/datasets/upload/")
    page.locator("#pick-files").set_input_files(tmp_path / name)
    page.locator("#name").fill(long(NAME, 100))
    reader.forgive("status of 422|status of 400")
    page.locator("#start").click()
    expect(page.locator("#files .fault")).to_contain_text("control character")
    expect(page.locator("#files")).to_contain_text("onerror=alert(1)")
    assert page.locator("[onerror], img[src=x], main script").count() == 0
    assert (page.evaluate(_TOO_WIDE), page.evaluate(_TURNED)) == ([], [])
