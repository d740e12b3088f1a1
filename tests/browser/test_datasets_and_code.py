"""The pages of datasets and code: folders, versions, previews, comparing, checking, launching, renaming, deleting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor
from tests.browser.world import World
from tests.real.files import files_with


def upload_folder(page: Page, folder: Path) -> None:
    page.locator("#pick-folder").set_input_files(folder)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#versions-title")).to_be_visible()
    page.wait_for_load_state()  # links that are followed by scripts have them then


def folder_of(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_a_folder_keeps_its_paths_and_the_next_version_shows_what_changed(owner: Visitor, tmp_path: Path):
    page, changes = owner.page, {"train/a.csv": "a\n2\n", "train/c.csv": "c\n3\n"}
    first = folder_of(tmp_path / "1" / "birds", {"train/a.csv": "a\n1\n", "test/deep/b.txt": "b\n", ".git/HEAD": "x"})
    second = folder_of(tmp_path / "2" / "birds", changes)
    owner.goto("/datasets/upload/")
    page.locator("#pick-folder").set_input_files(first)
    expect(page.locator("#chosen-words")).to_contain_text("2 files")
    expect(page.locator("#chosen-words")).to_contain_text("Skipped: .git")
    expect(page.locator("#name")).to_have_value("birds")
    page.get_by_role("button", name="Upload").click()
    expect(page.locator(".files th[scope=row]")).to_have_text(["test/deep/b.txt", "train/a.csv"])
    page.get_by_role("link", name="New version").click()
    page.locator("#note").fill("more of them")
    upload_folder(page, second)
    newest = page.locator(".versions > li").first
    expect(newest).to_contain_text("more of them")
    newest.locator(".changes-link").click()
    for heading, path in (("1 added", "train/c.csv"), ("1 changed", "train/a.csv"), ("1 removed", "test/deep/b.txt")):
        card = page.locator("section", has=page.get_by_role("heading", name=heading))
        expect(card.get_by_role("listitem")).to_have_text(path)
    page.get_by_role("link", name="train/c.csv").click()
    expect(page.locator(".preview-table tbody td")).to_have_text("3")


def test_a_file_is_shown_as_what_it_is(owner: Visitor, empty_world: World):
    """What tells most of the data comes first: its records, and how often each class occurs."""
    page = owner.page
    owner.goto(f"/datasets/{empty_world.ids['dataset']}/")
    described = page.locator("section", has=page.locator("#described-title"))
    expect(described.locator(".class-bars tbody tr")).to_have_count(10)
    preview = page.locator("#preview")
    expect(preview.locator(".class-bars tbody tr")).to_have_count(10)
    counts = [int(text.split()[0]) for text in preview.locator(".class-count").all_inner_texts()]
    records = int(re.findall(r"(\d+) records", preview.locator(".card-header").inner_text())[0])
    # Of a portal that has little time: as many as it had time for, and it says so.
    counted = int(re.findall(r"(\d+) records", preview.get_by_role("heading", name="Classes").inner_text())[0])
    assert sum(counts) == counted <= records
    assert records > 300
    expect(preview.locator(".features tbody th")).to_have_text(["image", "label"])
    expect(page.locator(".samples > li")).to_have_count(5)
    files = page.locator(".files")
    files.get_by_role("link", name="classes.csv", exact=True).click()
    expect(page.locator(".preview-table thead th")).to_have_text(["label", "word"])
    expect(page.locator(".preview-table tbody tr").last).to_contain_text("digit 9")
    files.get_by_role("link", name="README.md", exact=True).click()
    expect(page.locator(".preview-text")).to_contain_text("Handwritten, 8 x 8 pixels")
    files.get_by_role("link", name="sample.png", exact=True).click()
    picture = page.get_by_role("img", name="The picture sample.png")
    expect(picture).to_be_visible()
    page.wait_for_function("document.querySelector('.preview-image img').naturalWidth === 320")


def test_code_is_coloured_and_compared_line_by_line(owner: Visitor, empty_world: World):
    page = owner.page
    owner.goto(f"/code/{empty_world.ids['code']}/")
    page.locator(".tree").get_by_role("link", name="between_graph.py").click()
    expect(page.locator(".lines .k").filter(has_text=re.compile("^import$")).first).to_be_visible()
    words, keyword = (page.locator(one).first for one in (".lines code", ".lines .k"))
    colours = [one.evaluate("(one) => getComputedStyle(one).color") for one in (words, keyword)]
    assert colours[0] != colours[1]
    page.locator(".versions .changes-link").first.click()
    expect(page.locator(".change-counts")).to_contain_text("3 added")
    script = page.locator("section", has=page.get_by_role("heading", name="between_graph.py"))
    expect(script.locator(".removed-line")).to_contain_text("default=0.003")
    expect(script.locator(".added-line")).to_contain_text("default=0.005")
    page.locator("#from").select_option("2")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="No differences")).to_be_visible()


def test_launching_with_a_version_fills_the_form_with_it(owner: Visitor, empty_world: World):
    page, ids = owner.page, empty_world.ids
    for place, field, version in (
        (f"/datasets/{ids['dataset']}/", page.get_by_label("Dataset 1", exact=True), ids["dataset-version"]),
        (f"/code/{ids['code']}/?version=1", page.locator("select[name=code]"), ids["code-first"]),
    ):
        owner.goto(place)
        page.get_by_role("link", name="Launch a job").click()
        expect(page.get_by_role("heading", name="Launch a job")).to_be_visible()
        expect(field).to_have_value(version)


def test_a_check_of_the_checksums_finds_a_changed_byte(owner: Visitor, empty_world: World, tmp_path: Path):
    page, text = owner.page, "measured,value\n" + "1,0.5\n" * 50
    owner.goto("/datasets/upload/")
    upload_folder(page, folder_of(tmp_path / "checked", {"good.csv": "a\n1\n", "bad.csv": text}))
    page.locator("#check").get_by_role("link", name="Verify").click()
    expect(page.locator(".check-good")).to_contain_text("All 2 files")
    [stored] = files_with(empty_world.portal.home, text.encode())
    stored.chmod(0o600)
    stored.write_text(text.replace("0.5", "0.6", 1))
    page.locator("#check").get_by_role("link", name="Verify again").click()
    expect(page.locator("#check .fault")).to_contain_text("bad.csv")
    expect(page.locator("#check [role=alert]")).to_contain_text("1 of 2 files failed the check")


@pytest.mark.parametrize("kind", ["datasets", "code"])
def test_a_thing_is_renamed_and_goes_when_its_name_is_typed(owner: Visitor, kind: str, tmp_path: Path):
    page = owner.page
    owner.goto(f"/{kind}/upload/")
    upload_folder(page, folder_of(tmp_path / "doomed", {"main.py": "print(1)\n"}))
    _choose(page, "Edit")
    page.get_by_label("Name", exact=True).fill("renamed & kept")
    page.get_by_label("Description").fill("For a moment.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("renamed & kept")
    expect(page.locator(".about")).to_have_text("For a moment.")
    _choose(page, "Delete code" if kind == "code" else "Delete dataset")
    owner.forgive("status of 422")
    page.locator("#name").fill("doomed")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#fault")).to_contain_text("Nothing was deleted")
    page.locator("#name").fill("renamed & kept")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".toast-note")).to_contain_text("renamed & kept has been deleted")
    expect(page.locator(".list-name").filter(has_text="renamed")).to_have_count(0)
    expect(page.locator(".list-name").filter(has_text="digits")).to_be_visible()


def _choose(page: Page, action: str) -> None:
    page.locator(".page-actions summary").click()
    page.get_by_role("link", name=action).click()
