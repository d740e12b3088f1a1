"""The log viewer, over a long log and a live one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor
from tests.browser.world import SMALL, World, script
from tests.real.scene import until
from yardmaster_client import LogLine

LINES = 200_000
LONG = f"""
import sys
for number in range({LINES}):
    if number == 60_000:
        print("ERROR: the first thing that went wrong")
    elif number == 150_000:
        print("WARNING: needle-in-the-haystack was found")
    elif number == 150_001:
        print("\\x1b[31mred\\x1b[0m <script>alert(1)</script> \\x1b]0;title\\x07 end")
    elif 100_000 <= number < 100_005:
        print("E0000 00:00:1731500000.123456      12 cuda_dnn.cc:1407] Unable to register cuDNN factory: Attempting to "
              "register factory for plugin cuDNN when one has already been registered")
    else:
        print("line", number)
"""
CREW = """
import os, time
me = f"{os.environ['YARDMASTER_ROLE']}-{os.environ['YARDMASTER_INDEX']}"
print("begun at", time.time_ns(), flush=True)
for number in range(400):
    is_lone = (me, number) == ("worker-1", 300)
    print("ERROR: only one of us saw this" if is_lone else f"{me} counts {number}", flush=True)
    time.sleep(0.001)
if me == "ps-0":
    time.sleep(600)
"""
CREW_LINES = 401
BAR = """
import time
print("the bar begins", flush=True)
for step in range(10_000):
    print(f"\\r\\x1b[32m{step}\\x1b[0m of 10000 steps", end="", flush=True)
    time.sleep(0.05)
"""
LIVE = """
import time
for number in range(100_000):
    print("beat", number, flush=True)
    time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def jobs(empty_world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A job whose log is long, one with three tasks and two attempts, and one that writes 50 lines a second."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "long.py").write_text(LONG)
    (folder / "crew.py").write_text(CREW)
    (folder / "live.py").write_text(LIVE)
    (folder / "bar.py").write_text(BAR)
    latest = empty_world.client.code.put("talkers", [folder]).latest
    assert latest is not None
    jobs = empty_world.client.jobs
    roles = {"ps": {"replicas": 1, **SMALL}, "worker": {"replicas": 2, **SMALL}}
    crew = {"strategy": "between_graph", "roles": roles}
    launched = {
        name: jobs.launch(script(empty_world, name, f"{name}.py", code=latest.id, **more)).id
        for name, more in (("crew", crew), ("long", {}), ("live", {}), ("bar", {}))
    }
    for _ in range(2):
        assert jobs.wait(launched["crew"], timeout=90).phase == "SUCCEEDED"
        until(lambda: jobs.get(launched["crew"]).cleaned_up_at, 60, "the crew to be gone")
        if jobs.get(launched["crew"]).attempt == 1:
            jobs.retry(launched["crew"])
    jobs.wait(launched["long"], timeout=90)
    until(lambda: any(jobs.lines(launched["live"])), 60, "the first line")
    return launched


def numbers(page: Page) -> list[int]:
    """The numbers of the lines that are in the page."""
    return page.locator(".log-rows a.log-number").evaluate_all("all => all.map((one) => Number(one.textContent))")


def line(page: Page, number: int):
    return page.locator(".log-row").filter(has=page.locator(f"a.log-number[href$=':L{number}']"))


def opened(owner: Visitor, job: str, rest: str = "") -> Page:
    owner.goto(f"/jobs/{job}/logs/{rest}")
    expect(owner.page.locator(".log-rows .log-row").first).to_be_visible()
    return owner.page


class TestLong:
    @pytest.mark.long
    def test_its_end_is_there_after_two_requests_and_few_rows_are_in_the_page(self, owner, jobs):
        asked: list[str] = []
        owner.page.on("request", lambda one: asked.append(one.url) if "/api/" in one.url else None)
        page = opened(owner, jobs["long"])
        expect(line(page, LINES)).to_be_visible()
        assert len(asked) <= 2
        assert len(numbers(page)) < 200
        expect(page.locator("[data-total]")).to_have_text(f"{LINES:,} lines")
        expect(page.locator("[data-state]")).to_have_text("Complete")

    def test_keys_lead_to_the_start_the_end_and_the_first_error(self, owner, jobs):
        page = opened(owner, jobs["long"])
        page.keyboard.press("g")
        expect(line(page, 1)).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("e")
        expect(line(page, 60_001)).to_contain_text("the first thing that went wrong")
        page.keyboard.press("Shift+G")
        expect(line(page, LINES)).to_be_visible()

    def test_levels_are_counted_and_filtered(self, owner, jobs):
        page = opened(owner, jobs["long"])
        page.locator(".log-viewer").hover()
        errors = page.locator("button[data-level=error]")
        expect(errors).to_contain_text("1", timeout=30_000)
        expect(page.locator("[data-count=warnings]")).to_have_text("1", timeout=30_000)
        errors.click()
        expect(page.locator(".log-row")).to_have_count(1)
        expect(page.locator(".log-row")).to_contain_text("the first thing that went wrong")
        expect(page).to_have_url(re.compile("level=error"))
        page.reload()
        expect(page.locator(".log-row")).to_have_count(1)

    def test_the_search_looks_through_all_of_it_and_steps(self, owner, jobs):
        page = opened(owner, jobs["long"])
        page.keyboard.press("/")
        page.keyboard.type("needle-in")
        expect(line(page, 150_001)).to_be_visible()
        expect(line(page, 150_001).locator("mark")).to_have_text("needle-in")
        expect(page.locator("[data-found]")).to_contain_text("1")
        page.locator("#log-query").fill("line 1777")
        expect(page.locator("[data-found]")).to_contain_text("of 111", timeout=20_000)
        chosen = page.locator(".log-row.log-chosen .log-text")
        expect(chosen).to_contain_text("line 1777")
        start = chosen.inner_text()
        page.keyboard.press("Enter")
        expect(chosen).not_to_have_text(start)  # only then has it gone there
        first = chosen.inner_text()
        page.get_by_role("button", name="Next match").click()
        expect(chosen).not_to_have_text(first)
        page.get_by_role("button", name="Previous match").click()
        expect(chosen).to_have_text(first)
        page.locator("#log-query").press("Enter")
        expect(chosen).not_to_have_text(first)
        page.locator("#log-query").press("Shift+Enter")
        expect(chosen).to_have_text(first)

    def test_a_regular_expression_finds_and_a_wrong_one_is_explained(self, owner, jobs):
        page = opened(owner, jobs["long"])
        page.get_by_role("button", name="Regular expression").click()
        page.locator("#log-query").fill("needle-(in|on)")
        expect(line(page, 150_001)).to_be_visible()
        owner.forgive("status of 400")
        page.locator("#log-query").fill("needle-(")
        expect(page.locator("[data-note]")).to_contain_text("regular expression")
        page.locator("#log-query").fill("needle-on")
        expect(page.locator("[data-found]")).to_have_text("none")
        expect(page.locator("[data-note]")).to_be_hidden()

    def test_what_a_script_writes_is_coloured_text_and_nothing_else(self, owner, jobs):
        page = opened(owner, jobs["long"], "#worker-0:L150002")
        row = line(page, 150_002)
        expect(row).to_contain_text("red <script>alert(1)</script>")
        expect(row.locator(".log-text span").first).to_have_text("red")
        assert page.title() != "title"

    def test_what_a_framework_writes_at_every_start_is_one_row_that_a_key_opens(self, owner, jobs):
        page = opened(owner, jobs["long"], "#worker-0:L99999")
        fold = page.get_by_role("button", name="5 lines of TensorFlow")
        expect(fold).to_be_visible()
        expect(line(page, 100_006)).to_be_visible()
        expect(line(page, 100_003)).to_have_count(0)
        fold.press("Enter")
        expect(line(page, 100_005)).to_contain_text("cuDNN factory")
        expect(fold).to_have_count(0)
        closing = page.get_by_role("button", name="Fold these 5 lines")
        expect(closing).to_be_focused()
        expect(closing).to_have_attribute("aria-expanded", "true")
        closing.press("Enter")
        expect(fold).to_be_focused()
        expect(fold).to_have_attribute("aria-expanded", "false")
        expect(closing).to_have_count(0)
        fold.click()
        expect(closing).to_be_visible()
        page.goto("about:blank")
        opened(owner, jobs["long"], "#worker-0:L100003")
        expect(line(page, 100_003)).to_contain_text("cuDNN factory")

    def test_a_line_and_a_range_have_addresses(self, owner, jobs):
        page = opened(owner, jobs["long"], "#worker-0:L1000")
        expect(line(page, 1_000)).to_have_class(re.compile("log-chosen"))
        line(page, 1_003).locator("a.log-number").click(modifiers=["Shift"])
        expect(page.locator(".log-row.log-chosen")).to_have_count(4)
        page.get_by_role("button", name="Copy link").click()
        expect(page.locator(".toast-note").filter(has_text="Link copied.")).to_be_visible()
        link = page.evaluate("navigator.clipboard.readText()")
        page.get_by_role("button", name="Copy 4 lines").click()
        expect(page.locator(".toast-note").filter(has_text="Lines copied.")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.splitlines() == [f"line {number}" for number in range(999, 1_003)]
        page.goto("about:blank")
        page.goto(link)
        expect(page.locator(".log-row.log-chosen")).to_have_count(4)

    def test_a_line_that_is_not_there_is_told(self, owner, jobs):
        page = opened(owner, jobs["long"], "#worker-0:L999999999")
        expect(page.locator(".toast-note")).to_contain_text("no line 999999999")

    def test_times_and_wrapping_are_chosen_and_remembered(self, owner, jobs):
        page = opened(owner, jobs["long"])
        assert page.locator(".log-time").first.is_visible()
        page.get_by_role("button", name="Time stamps").click()
        expect(page.locator(".log-time").first).to_be_hidden()
        page.get_by_role("button", name="Wrap long lines").click()
        expect(page.locator(".log-scroller")).to_have_class(re.compile("log-wraps"))
        page.reload()
        expect(page.locator(".log-rows .log-row").first).to_be_visible()
        expect(page.locator(".log-time").first).to_be_hidden()
        expect(page.locator(".log-scroller")).to_have_class(re.compile("log-wraps"))

    def test_all_of_it_can_be_downloaded(self, owner, jobs, tmp_path: Path):
        page = opened(owner, jobs["long"], "?task=worker-0")
        with page.expect_download() as download:
            page.locator("[data-raw]").click()
        download.value.save_as(tmp_path / "log")
        lines = (tmp_path / "log").read_bytes().splitlines()
        assert len(lines) == LINES
        assert lines[5] == b"line 5"

    def test_a_wheel_through_the_whole_log_meets_no_hole(self, owner, jobs):
        page = opened(owner, jobs["long"])
        page.locator(".log-scroller").hover()
        for _ in range(30):
            page.mouse.wheel(0, -4_000)
            page.wait_for_timeout(30)
        # The page may not have come to the wheel's events yet.
        first = "Number(document.querySelector('.log-rows a.log-number')?.textContent)"
        page.wait_for_function(f"(line) => {first} < line", arg=LINES - 1_000)
        expect(page.get_by_role("button", name="Jump to latest")).to_be_visible()
        expect(page.locator(".log-unread")).to_have_count(0)
        shown = numbers(page)
        assert shown == list(range(shown[0], shown[0] + len(shown)))
        assert shown[0] < LINES - 1_000


class TestSeveral:
    def test_all_tasks_lines_are_there_by_time_and_each_tasks_in_order(self, owner, jobs):
        page = opened(owner, jobs["crew"])
        expect(page.locator("[data-total]")).to_have_text(f"{3 * CREW_LINES:,} lines")
        page.keyboard.press("g")
        expect(page.locator(".log-row").filter(has_text="begun at").first).to_be_visible()
        rows = page.locator(".log-rows .log-row").evaluate_all(
            """all => all.map((one) => [one.querySelector('.log-task').textContent,
                Number(one.querySelector('a').hash.split(':L')[1]), one.querySelector('time').dateTime])"""
        )
        assert numbers(page) == list(range(1, len(rows) + 1))
        assert [time for *_, time in rows] == sorted(time for *_, time in rows)
        for task in {task for task, *_ in rows}:
            mine = [number for name, number, _ in rows if name == task]
            assert mine == list(range(1, len(mine) + 1)), task

    def test_the_search_over_all_tasks_leads_to_the_one_task_that_wrote_it(self, owner, jobs):
        page = opened(owner, jobs["crew"])
        page.keyboard.press("/")
        page.keyboard.type("only one of us")
        chosen = page.locator(".log-row.log-chosen")
        expect(chosen.locator(".log-task")).to_have_text("worker-1")
        expect(chosen.locator("a.log-number")).to_have_attribute("href", "#worker-1:L302")
        expect(page.locator("[data-found]")).to_have_text("1 of 1")
        page.locator("#log-query").fill("counts 7")
        expect(page.locator("[data-found]")).to_contain_text(f"of {3 * 11}")
        expect(chosen.locator("mark")).to_have_text("counts 7")
        seen = []
        for _ in range(3 * 11):
            seen.append(chosen.locator(".log-text").inner_text())
            page.get_by_role("button", name="Next match").click()
            expect(chosen.locator(".log-text")).not_to_have_text(seen[-1])
        assert len(set(seen)) == len(seen)

    def test_one_task_is_chosen_and_the_search_goes_along(self, owner, jobs):
        page = opened(owner, jobs["crew"], "?q=counts+39")
        expect(page.locator("[data-found]")).to_contain_text(f"of {3 * 11}")
        page.get_by_label("Task", exact=True).select_option("worker-1")
        expect(page).to_have_url(re.compile("task=worker-1"))
        expect(page.locator("[data-total]")).to_have_text(f"{CREW_LINES} lines")
        expect(page.locator("[data-found]")).to_contain_text("of 11")
        assert set(page.locator(".log-row .log-text").all_inner_texts()) <= {
            f"worker-1 counts {number}" for number in range(400)
        } | {"ERROR: only one of us saw this"}

    def test_every_attempt_has_its_own_log(self, owner, jobs, empty_world: World):
        lines = empty_world.client.jobs.lines
        begun = [next(lines(jobs["crew"], role="worker", attempt=number)).text for number in (1, 2)]
        assert begun[0] != begun[1]
        page = opened(owner, jobs["crew"], "?task=worker-0")
        expect(page.get_by_label("Attempt")).to_have_value("2")
        for number in (1, 2):
            page.get_by_label("Attempt").select_option(str(number))
            expect(page).to_have_url(re.compile(f"attempt={number}"))
            expect(page.locator("[data-state]")).to_have_text("Complete")
            page.keyboard.press("g")
            expect(line(page, 1)).to_contain_text(begun[number - 1])


class TestLive:
    def test_a_log_without_errors_says_so(self, owner, jobs):
        page = opened(owner, jobs["live"])
        expect(page.locator("[data-state]")).to_have_text("Live")
        page.keyboard.press("e")
        expect(page.locator(".toast-note")).to_contain_text("No errors in this log")

    def test_what_is_searched_for_is_also_found_in_lines_that_come_later(self, owner, jobs):
        page = opened(owner, jobs["live"])
        expect(page.locator("[data-state]")).to_have_text("Live")
        page.get_by_role("button", name="Regular expression").click()
        page.locator("#log-query").fill("beat .*0$")
        found = page.locator("[data-found]")
        expect(found).to_have_text(re.compile(r"of [\d,]+$"))
        count = found.inner_text()
        expect(found).not_to_have_text(count)
        expect(found).to_have_text(re.compile(r"of [\d,]+$"))

    def test_it_follows_until_one_scrolls_up_and_again_from_the_button_on(self, owner, jobs):
        page = opened(owner, jobs["live"])
        expect(page.locator("[data-state]")).to_have_text("Live")
        last = numbers(page)[-1]
        page.wait_for_function(
            "last => Number([...document.querySelectorAll('a.log-number')].at(-1).textContent) > last", arg=last
        )
        page.locator(".log-scroller").hover()
        page.mouse.wheel(0, -600)
        jump = page.get_by_role("button", name="Jump to latest")
        expect(jump).to_be_visible()
        held = numbers(page)[0]
        expect(jump).to_contain_text("new)")
        assert numbers(page)[0] == held
        jump.click()
        expect(jump).to_be_hidden()
        page.wait_for_function(
            "held => Number(document.querySelector('a.log-number').textContent) > held + 50", arg=held
        )

    def test_a_cut_is_shown_and_healed_without_a_lost_or_doubled_line(self, owner, jobs, empty_world: World):
        page = opened(owner, jobs["live"])
        owner.forgive("ERR_INTERNET_DISCONNECTED|ERR_CONNECTION|WebSocket")
        for _ in range(3):
            expect(page.locator("[data-state]")).to_have_text("Live")
            owner.context.set_offline(True)
            expect(page.locator("[data-state]")).to_contain_text("reconnecting")
            page.wait_for_timeout(700)
            owner.context.set_offline(False)
        expect(page.locator("[data-state]")).to_have_text("Live")
        page.locator(".log-scroller").hover()
        page.mouse.wheel(0, -1_500)
        expect(page.get_by_role("button", name="Jump to latest")).to_be_visible()
        expect(page.locator(".log-unread")).to_have_count(0)
        texts = page.locator(".log-rows .log-row").evaluate_all(
            """all => all.map((one) =>
                [one.querySelector('.log-number').textContent, one.querySelector('.log-text').textContent])"""
        )
        assert texts == [
            [str(first), f"beat {first - 1}"] for first in range(int(texts[0][0]), int(texts[0][0]) + len(texts))
        ]

    def test_a_progress_bar_is_the_last_line_and_changes_in_place(self, owner, jobs, empty_world: World):
        page = opened(owner, jobs["bar"])
        bar = page.locator(".log-open .log-row")
        expect(bar).to_contain_text("of 10000 steps", timeout=30_000)
        text = bar.locator(".log-text")
        expect(text).not_to_have_text(text.inner_text(), timeout=30_000)
        expect(bar).to_have_count(1)
        expect(bar.locator(".log-text span")).to_have_count(1)
        expect(page.locator(".log-rows .log-row")).to_have_count(1)

    def test_it_outlives_a_killed_web_process(self, owner, jobs, empty_world: World):
        page = opened(owner, jobs["live"])
        expect(page.locator("[data-state]")).to_have_text("Live")
        owner.forgive("ERR_CONNECTION|WebSocket|status of 50|net::")
        empty_world.portal.kill("web")
        expect(page.locator("[data-state]")).to_contain_text("reconnecting")
        empty_world.portal.start("web")
        expect(page.locator("[data-state]")).to_have_text("Live", timeout=40_000)
        known = sum(isinstance(one, LogLine) for one in empty_world.client.jobs.lines(jobs["live"]))
        page.wait_for_function(
            "known => Number([...document.querySelectorAll('a.log-number')].at(-1).textContent) >= known", arg=known
        )
        shown = numbers(page)
        assert shown == list(range(shown[0], shown[0] + len(shown)))


class TestRunAgain:
    """The last in this file: the job has one attempt until then."""

    def test_logs_that_are_open_say_so_and_lead_to_the_new_one(self, owner, jobs, empty_world: World):
        page = opened(owner, jobs["long"])
        beside = owner.context.new_page()
        beside.goto(owner.page.url.replace("logs/", ""))
        beside.locator("#log").scroll_into_view_if_needed()
        for one in (page, beside):
            expect(one.locator(".log-viewer [data-state]")).to_have_text("Complete")
            expect(one.locator("[data-newer]")).to_have_count(0)
        empty_world.client.jobs.retry(jobs["long"])
        for one in (page, beside):
            expect(one.locator("[data-newer]")).to_have_text(
                "This is attempt 1. Attempt 2 has started: show its log", timeout=30_000
            )
        page.get_by_role("link", name="show its log").click()
        expect(page).to_have_url(re.compile("attempt=2"))
        expect(page.get_by_label("Attempt")).to_have_value("2")
        beside.close()
