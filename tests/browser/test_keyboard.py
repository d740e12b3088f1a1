"""The pages without a mouse."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import DESK, LOOKS, Look, Visitor, fields_answered
from tests.browser.world import World

# How the focused element and what shows its focus for it (its label, the card beside a hidden radio button) look now;
# and how those that had the focus before look without it.
_LOOK = """() => {
    const parts = (one) => [one, one.closest("label"), one.nextElementSibling].filter(Boolean);
    const look = (one) => parts(one).map((part) => {
        const css = getComputedStyle(part);
        const { outlineStyle, outlineColor, outlineWidth, boxShadow, borderColor, backgroundColor } = css;
        return [outlineStyle, outlineColor, outlineWidth, boxShadow, borderColor, backgroundColor];
    }).join(";");
    const before = window.hadFocus;
    const isThere = before && before.one.isConnected;
    const lost = isThere ? { name: before.name, isMarked: before.look !== look(before.one) } : null;
    const one = document.activeElement;
    window.hadFocus = null;
    if (!one || one === document.body) return { lost, name: null };
    const text = (one.textContent || one.getAttribute("aria-label") || "").trim().slice(0, 30);
    const name = `${one.tagName} ${one.id} ${one.className} ${text}`;
    window.hadFocus = { one, name, look: look(one) };
    const box = (one.closest("label") ?? one).getBoundingClientRect();
    const isInHeight = box.bottom > 0 && box.top < innerHeight;
    const isOnScreen = isInHeight && box.width > 0 && box.right > 0 && box.left < innerWidth;
    return { lost, name, isOnScreen };
}"""


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")


def tabbed_to(page: Page, wanted: str, most: int = 80) -> None:
    """Press Tab until the element with this id has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == wanted:
            return
    raise AssertionError(f"Tab does not reach #{wanted} in {most} steps")


@pytest.mark.parametrize(
    "path",
    ["/", "/jobs/", "/jobs/launch/", "/datasets/", "/account/tokens/", "/jobs/{running}/", "/jobs/{logged}/logs/"],
)
@pytest.mark.parametrize("look", [DESK, pytest.param(LOOKS[1], marks=pytest.mark.long)], ids=str)
def test_what_has_the_focus_is_seen(ada: Visitor, full_world: World, path: str, look: Look):
    ada.goto(path.format(**full_world.ids))
    ada.page.wait_for_load_state("networkidle")
    unseen, stops = [], 0
    for _ in range(45):
        ada.page.keyboard.press("Tab")
        at = ada.page.evaluate(_LOOK)
        if at["lost"] and not at["lost"]["isMarked"]:
            unseen.append(f"looks the same without the focus: {at['lost']['name']}")
        if at["name"] is None:
            break
        stops += 1
        if not at["isOnScreen"]:
            unseen.append(f"not on the screen: {at['name']}")
    assert unseen == []
    assert stops > 10


def test_the_first_stop_skips_to_the_content(ada: Visitor):
    ada.goto("/jobs/")
    ada.page.keyboard.press("Tab")
    assert focused(ada.page) == "Skip to content"
    ada.page.keyboard.press("Enter")
    assert focused(ada.page) == "content"


def test_find_opens_moves_and_goes(ada: Visitor, full_world: World):
    page = ada.page
    ada.goto("/account/")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-words")).to_be_focused()
    page.keyboard.type("motley")
    option = page.get_by_role("option").filter(has_text="motley log")
    expect(option).to_be_visible()
    for _ in range(10):
        if option.get_attribute("aria-selected") == "true":
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(full_world.ids["logged"]))
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()


def test_menus_open_close_and_give_the_focus_back(ada: Visitor):
    page = ada.page
    ada.goto("/")
    page.locator(".account-menu summary").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Browser sessions", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Browser sessions", exact=True)).to_be_hidden()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_a_job_is_prepared_with_the_keyboard_alone(ada: Visitor, full_world: World):
    """From the presets through the counts to the button; the verdict follows what is typed."""
    page = ada.page
    ada.goto(f"/jobs/launch/?code={full_world.ids['code-version']}")
    page.locator("input[name=strategy]:checked").focus()
    with fields_answered(page):
        page.keyboard.press("ArrowDown")
    expect(page.locator("input[name=strategy]:checked")).to_be_focused()
    page.locator("#preset-between_graph").focus()
    page.keyboard.press("Space")
    expect(page.locator("input[data-role=ps]")).to_be_visible()
    tabbed_to(page, page.locator("input[data-role=ps]").get_attribute("id") or "")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#launch-words")).to_contain_text("2 parameter servers")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#launch-words")).to_contain_text("1 parameter server")
    expect(page.locator("#preset-between_graph")).to_be_checked()
    tabbed_to(page, "launch-button")


def test_the_picture_shows_the_tasks_of_each_strategy(ada: Visitor):
    ada.goto("/jobs/launch/?preset=spark")
    expect(ada.page.locator("#launch-picture text")).to_have_text(["driver", "executor 0", "executor 1"])
    ada.page.locator("input[data-role=executor]").fill("9")
    expect(ada.page.locator("#launch-picture text").last).to_have_text("+ 5")
    ada.goto("/jobs/launch/?preset=parameter_server")
    expect(ada.page.locator("#launch-picture text").first).to_have_text("chief")


def test_the_log_is_read_with_the_keyboard(ada: Visitor, full_world: World):
    page = ada.page
    ada.goto(f"/jobs/{full_world.ids['logged']}/logs/")
    expect(page.locator(".log-row").first).to_be_visible()
    page.keyboard.press("?")
    expect(page.locator("#log-key-list")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    expect(page.locator(".log-row").filter(has_text="ERROR")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("line 150 of")
    expect(page.locator(".log-row mark").filter(has_text="line 150 of")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".log-scroller")).to_be_focused()


@pytest.mark.parametrize("name", ["Replace", "Delete"])
def test_a_menu_at_the_left_of_a_narrow_page_is_seen_whole(ada: Visitor, full_world: World, name: str):
    ada.page.set_viewport_size({"width": 390, "height": 844})
    ada.goto(f"/namespaces/{full_world.ids['team']}/secrets/")
    ada.page.locator("summary", has_text=name).first.press("Enter")
    menu = ada.page.locator("details[open] > .dropdown-menu")
    expect(menu).to_be_visible()
    # It is moved by an event that comes after it is shown.
    ada.page.wait_for_function("(menu) => menu.getBoundingClientRect().left >= 0", arg=menu.element_handle())
    box = menu.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_the_plot_of_a_sweep_has_a_line_for_each_trial_and_an_axis_is_narrowed(ada: Visitor, full_world: World):
    ada.goto(f"/sweeps/{full_world.ids['sweep']}/")
    page = ada.page
    picture, count = page.locator("svg.parallel"), page.locator("#sweep-shown")
    expect(count).to_have_text(re.compile(r"^\d trials$"))
    trials = int(count.inner_text().split()[0])
    assert trials >= 4
    expect(picture.locator("polyline")).to_have_count(trials)
    assert picture.locator(".parallel-name title").all_text_contents() == ["lr", "momentum", "loss"]
    page.get_by_text("Filter by parameter").focus()
    page.keyboard.press("Enter")
    page.get_by_label("momentum from").focus()
    page.keyboard.press("ArrowRight")
    expect(count).to_have_text(re.compile(rf"^[1-{trials - 1}] of {trials} trials$"))
    shown = int(count.inner_text().split()[0])
    expect(picture.locator("polyline.parallel-out")).to_have_count(trials - shown)
    page.get_by_role("button", name="Show all").press("Enter")
    expect(count).to_have_text(f"{trials} trials")
    expect(picture.locator("polyline.parallel-out")).to_have_count(0)
