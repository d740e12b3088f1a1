"""A newcomer's first launch: a folder with a script and a requirements.txt, and three decisions in the real page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, StorageState, expect

from tests.browser.axe import serious_findings
from tests.browser.visitor import DESK, PHONE, Look, Visitor, cookies_of, visitor
from tests.integration.gallery.folders import GALLERY, yaml_wheel
from tests.real.package_index import package_index
from tests.real.scene import Scene, scene, until

FOLDER = GALLERY / "keras_requirements"


@pytest.fixture(scope="module")
def portal_scene() -> Iterator[Scene]:
    """Nothing was ever uploaded or launched here."""
    with package_index(yaml_wheel()) as index, scene(settings={"YARDMASTER_PACKAGE_INDEX": index.url}) as one:
        one.portal.token_of("ada")
        yield one


@pytest.fixture(scope="module")
def state(browser: Browser, portal_scene: Scene) -> StorageState:
    return cookies_of(browser, portal_scene.portal.url, "ada")


@pytest.fixture
def newcomer(browser: Browser, portal_scene: Scene, state: StorageState, look: Look) -> Iterator[Visitor]:
    with visitor(browser, portal_scene.portal.url, look, storage_state=state) as one:
        yield one


def assert_good_page(one: Visitor) -> None:
    one.page.wait_for_load_state("networkidle")
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    assert serious_findings(one.page) == []
    one.assert_content()


@pytest.mark.parametrize("look", [DESK, PHONE], ids=str)
def test_a_folder_with_requirements_takes_three_decisions(newcomer: Visitor, portal_scene: Scene, look: Look):
    page = newcomer.page
    newcomer.goto("/jobs/launch/")
    if look is DESK:
        expect(page.get_by_text("There is no code yet")).to_be_visible()
    assert_good_page(newcomer)
    page.locator("#launch-folder").set_input_files(FOLDER)  # the first: which folder
    expect(page.locator("#f-entry_point")).to_have_value("train.py", timeout=30_000)
    expect(page.locator("#f-name")).to_have_value("keras_requirements")
    expect(page.locator("#launch-requirements")).to_be_visible()
    expect(page.locator("#preset-single")).to_be_checked()
    expect(page.locator(".launch-single")).to_contain_text("One task runs the script")  # the second: it may stay
    expect(page.locator("#launch-verdict")).to_contain_text("Fits now")
    expect(page.locator("#launch-verdict .launch-list")).to_have_count(0)
    assert_good_page(newcomer)
    page.locator("#launch-button").click()  # the third
    expect(page.locator("#job-status")).to_be_visible()
    job = portal_scene.client.jobs.get(page.url.rstrip("/").rpartition("/")[2])
    until(lambda: any("1 package installed" in line or "1 package from" in line for line in portal_scene.lines(job)))
    assert job.spec["requirements"] is None, "those of the folder count"
    portal_scene.client.jobs.stop(job.id)
    newcomer.assert_content()


def test_the_same_folder_again_is_the_next_version_and_what_was_typed_stays(newcomer: Visitor, tmp_path: Path):
    page = newcomer.page
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    newcomer.goto("/jobs/launch/")
    for number in (1, 2):
        page.locator("#f-name").fill("typed")
        page.locator("#launch-folder").set_input_files(folder)
        expect(page.locator("#f-code option:checked")).to_have_text(f"mine, version {number} (newest)")
        expect(page.locator("#f-entry_point")).to_have_value("train.py")
        expect(page.locator("#f-name")).to_have_value("typed")
    page.locator("#launch-files").set_input_files(folder / "train.py")
    expect(page.locator("#f-code option:checked")).to_have_text("train, version 1 (newest)")


def test_a_folder_is_taken_also_where_the_fields_were_replaced_while_the_dialog_was_open(
    newcomer: Visitor, tmp_path: Path
):
    page = newcomer.page
    (tmp_path / "late.py").write_text("print(1)\n")
    newcomer.goto("/jobs/launch/")
    with page.expect_file_chooser() as dialog:
        page.get_by_text("Choose files").click()
    before = page.locator("#launch-files").element_handle()
    page.get_by_text("Independent tasks (batch)").click()
    expect(page.locator("#preset-batch")).to_be_checked()
    page.wait_for_function("one => !one.isConnected", arg=before)
    dialog.value.set_files(tmp_path / "late.py")
    expect(page.locator("#f-code option:checked")).to_have_text("late, version 1 (newest)")


def test_the_last_of_two_choices_of_code_stands_however_late_the_answer_to_the_first(newcomer: Visitor, tmp_path: Path):
    page = newcomer.page
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text("print(1)\n")
    newcomer.goto("/jobs/launch/")
    held: list[Route] = []
    page.route(re.compile("/jobs/launch/$"), lambda route: held.append(route), times=1)
    page.locator("#launch-files").set_input_files(tmp_path / "first.py")
    expect(page.locator("#f-code option:checked")).to_have_text("first, version 1 (newest)")
    until(lambda: bool(page.evaluate("1")) and held, what="the first choice asked")
    page.locator("#launch-files").set_input_files(tmp_path / "second.py")
    expect(page.locator("#f-entry_point")).to_have_value("second.py")
    expect(page.locator("#f-code option:checked")).to_have_text("second, version 1 (newest)")


def test_what_is_chosen_while_an_answer_is_awaited_stands(newcomer: Visitor):
    page = newcomer.page
    newcomer.goto("/jobs/launch/")
    held: list[Route] = []
    page.route(re.compile("/jobs/launch/$"), lambda route: held.append(route), times=1)
    page.get_by_text("Independent tasks (batch)").click()
    until(lambda: bool(page.evaluate("1")) and held, what="the first strategy asked")
    page.get_by_text("ParameterServerStrategy").click()
    page.locator("#f-tf1").check()
    page.locator("#launch-place summary").click()
    page.locator("#f-engine").select_option(index=1)
    engine = page.locator("#f-engine").input_value()
    held[0].continue_()
    expect(page.locator("[name=roles-chief-replicas]")).to_be_attached()
    expect(page.locator("[name=roles-ps-replicas]")).to_be_visible()
    expect(page.locator("[name=strategy]:checked")).to_have_value("parameter_server")
    expect(page.locator("#f-tf1")).to_be_checked()
    expect(page.locator("#f-engine")).to_have_value(engine)
    assert engine


def test_two_answers_in_the_wrong_order_undo_neither_choice(newcomer: Visitor, tmp_path: Path):
    page = newcomer.page
    (tmp_path / "third.py").write_text("print(1)\n")
    newcomer.goto("/jobs/launch/")
    held: list[Route] = []
    page.route(re.compile("/jobs/launch/$"), lambda route: held.append(route), times=1)
    page.get_by_text("Independent tasks (batch)").click()
    until(lambda: bool(page.evaluate("1")) and held, what="the strategy asked")
    page.locator("#launch-files").set_input_files(tmp_path / "third.py")
    expect(page.locator("#f-entry_point")).to_have_value("third.py")
    before = page.locator("#f-entry_point").element_handle()
    held[0].continue_()
    page.wait_for_function("one => !one.isConnected", arg=before)
    expect(page.locator("#f-code option:checked")).to_have_text("third, version 1 (newest)")
    expect(page.locator("#f-entry_point")).to_have_value("third.py")
    expect(page.locator("[name=strategy]:checked")).to_have_value("batch")


def test_what_cannot_be_uploaded_is_said_and_can_be_chosen_again(newcomer: Visitor, tmp_path: Path):
    page = newcomer.page
    (tmp_path / "once.py").write_text("print(1)\n")
    newcomer.goto("/jobs/launch/")
    newcomer.forgive("ERR_FAILED")

    def cut(route: Route) -> None:
        route.abort()

    page.route(re.compile("/api/v1/uploads/$"), cut)
    page.locator("#launch-files").set_input_files(tmp_path / "once.py")
    expect(page.locator("#launch-folder-said")).to_contain_text("Choose it again once the portal is back.")
    page.unroute(re.compile("/api/v1/uploads/$"), cut)
    page.locator("#launch-files").set_input_files(tmp_path / "once.py")
    expect(page.locator("#f-code option:checked")).to_have_text("once, version 1 (newest)")
    expect(page.locator("#launch-folder-said")).to_be_empty()
