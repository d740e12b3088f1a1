"""What a trace counts as an entry into a module, and what as a return."""

from __future__ import annotations

import time
from types import CodeType

import pytest

from tests.figures.sources import modules, targets
from tests.figures.table import Figure, Section, shown
from tests.figures.times import time_section
from tests.figures.tracing import Call, Trace, distinct, entered, in_package, in_portal, returns
from tests.timing import SLOWEST, summary
from yardmaster.quantity import parse_memory


def code(name: str) -> CodeType:
    return compile("", name, "exec")


def call(module: str, name: str, *callers: str) -> Call:
    return Call(module, code(name), callers)


def everything(module: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("order", "count"),
    [("", 0), ("a", 0), ("abc", 0), ("aab", 0), ("aba", 1), ("abab", 2), ("abcabc", 3), ("abba", 1)],
)
def test_a_return_is_an_entry_into_a_module_that_was_left_for_another(order: str, count: int):
    assert returns(list(order)) == count


def test_a_function_that_its_own_module_calls_enters_nothing():
    calls = [call("a", "f"), call("b", "g", "a"), call("a", "h", "a")]
    assert entered(calls, everything) == ["a", "b"]


def test_a_call_back_into_the_first_module_is_a_return():
    calls = [call("a", "f"), call("b", "g", "a"), call("a", "h", "b", "a")]
    assert (entered(calls, everything), returns(entered(calls, everything))) == (["a", "b", "a"], 1)


def test_functions_that_look_alike_in_two_modules_are_two():
    calls = [call("a", "f"), call("b", "g", "a"), call("c", "g", "a")]
    assert calls[1].code == calls[2].code
    assert entered(calls, everything) == ["a", "b", "c"]


def test_a_second_call_of_a_function_counts_no_more():
    first = call("b", "g", "a")
    assert entered([call("a", "f"), first, call("c", "h", "a"), first], everything) == ["a", "b", "c"]


def test_modules_that_do_not_count_are_looked_through():
    calls = [call("a", "f"), call("core", "g", "a"), call("a", "h", "core", "a"), call("b", "i", "core", "a")]
    found = entered(calls, lambda module: module != "core")
    assert (found, distinct(found)) == (["a", "b"], ["a", "b"])


@pytest.mark.parametrize(
    ("module", "counts"),
    [
        ("apps.jobs.services", True),
        ("apps.jobs.models.job", False),
        ("apps.uploads.models", False),
        ("apps.api.views", False),
        ("apps.apiary.views", True),
        ("yardmaster.job.spec", False),
    ],
)
def test_the_layer_of_the_portal_is_the_apps(module: str, counts: bool):
    assert in_portal(module) is counts


def test_a_package_holds_its_modules_and_not_its_neighbours():
    holds = in_package("a.b")
    assert [holds(one) for one in ("a.b", "a.b.c", "a.bc", "a")] == [True, True, False, False]


def test_a_trace_begins_at_its_entry_and_ends_with_it():
    trace = Trace(parse_memory.__code__)
    assert trace.follow(lambda: (parse_memory("1Gi"), parse_memory("2Gi"))) == (1 << 30, 2 << 30)
    assert [one.code for one in trace.calls].count(parse_memory.__code__) == 1
    assert {one.module for one in trace.calls} == {"yardmaster.quantity"}


def test_an_entry_that_is_never_called_is_an_error():
    with pytest.raises(LookupError, match="parse_memory"):
        Trace(parse_memory.__code__).follow(lambda: time.monotonic())


def test_the_source_has_what_it_imports():
    found = {one.name: one for one in modules()}
    assert "yardmaster.job.spec" in targets(found["yardmaster.lifecycle.plan"], set(found))


def test_the_table_is_aligned_and_shows_details_only_when_asked():
    section = Section("Title", "the rule", (Figure("long name", 7, "≤ 9", ("detail",)), Figure("x", 1234)))
    assert shown([section], verbose=False).splitlines() == [
        "Title", "  (the rule)", "  long name     7   goal ≤ 9", "  x          1234",
    ]  # fmt: skip
    assert "      detail" in shown([section], verbose=True)


def test_the_times_keep_the_slowest_tests_first(tmp_path):
    found = summary(12.34, {f"t{number}": float(number) for number in range(30)})
    assert (found["seconds"], found["tests"], len(found["slowest"])) == (12.3, 30, SLOWEST)
    assert found["slowest"][0] == [29.0, "t29"]
    assert time_section(tmp_path / "none").figures[0].name == "run make test first"
