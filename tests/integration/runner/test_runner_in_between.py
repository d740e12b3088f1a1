"""Whatever stands between a task and its portal and answers in its stead costs time, and neither lines nor the task."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable

import pytest

from tests.fakes.in_between import FOREIGN, PAGE
from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import FakeTaskPortal, uploaded

SCRIPT = """
    import os
    for number in range(300):
        print(number)
    open(os.environ["MODEL_DIR"] + "/model", "w").write("weights")
    checkpoint = os.environ["LOG_DIR"] + "/"
    for name in ("m-7.index", "m-7.data-00000-of-00001"):
        open(checkpoint + name, "w").write(name)
    open(checkpoint + "checkpoint", "w").write('model_checkpoint_path: "m-7"')
"""


def first_times(times: Callable[[str], int], answer: tuple[int, str, bytes]):
    """This answer to the first so many requests of each method and address."""
    seen: Counter[tuple[str, str]] = Counter()

    def in_between(method: str, path: str) -> tuple[int, str, bytes] | None:
        where = (method, "/".join(path.split("/")[:2]) if path.startswith("/") else path)
        seen[where] += 1
        return answer if seen[where] <= times(path) else None

    return in_between


WORST = [
    "a wrong Host, as a page",
    "a wrong Host, as a problem",
    "a firewall",
    "a proxy that takes less",
    "JSON of something else",
]
"""All others are told apart in the same place (tests/unit/runner/test_runner_answers.py)."""


@pytest.mark.parametrize("name", WORST)
def test_an_answer_of_something_in_between_costs_nothing(task: Task, portal: FakeTaskPortal, name: str):
    portal.orders(textwrap.dedent(SCRIPT))
    portal.order["inputs"] = [{"version": "d1", "name": "", "files": [portal.add_file("t.bin", b"x" * 5000)]}]
    portal.in_between = first_times(lambda path: 4 if path.startswith(("log/", "/objects")) else 2, FOREIGN[name])
    assert task.run(timeout=100) == 0, task.said
    assert portal.lines() == [b"%d" % number for number in range(300)]
    assert portal.gaps == {}
    assert portal.ends == {"worker-0": 300}
    assert portal.reports[-1]["state"] == "ended"
    assert "reason" not in portal.reports[-1]
    assert uploaded(portal, "model") == [{"model": b"weights"}]
    assert uploaded(portal, "checkpoints")[-1]["m-7.index"] == b"m-7.index"
    assert (task.work / "data" / "t.bin").read_bytes() == b"x" * 5000


def test_a_page_to_sign_in_at_is_no_content(task: Task, portal: FakeTaskPortal):
    """Neither of a file that is fetched, nor does it mean that a part has been taken."""
    portal.orders(textwrap.dedent(SCRIPT))
    is_of_the_store = lambda path: path.startswith(("/objects", "/parts"))  # noqa: E731
    portal.in_between = first_times(lambda path: 3 * is_of_the_store(path), FOREIGN["a page to sign in at"])
    assert task.run(timeout=100) == 0, task.said
    assert uploaded(portal, "model") == [{"model": b"weights"}]


def test_a_log_that_the_portal_does_not_have_holds_neither_the_script_nor_the_end_up(
    task: Task, portal: FakeTaskPortal
):
    """The portal's own word: it has no such task, and never will."""
    portal.orders("import os\nfor _ in range(400): os.write(1, (b'x' * 999 + b'\\n') * 100)\n")
    portal.order["limits"]["spool_bytes"] = 4 << 20
    portal.trouble_code = "unknown_task"
    portal.trouble = lambda method, path: 404 if path.startswith("log/") else None
    assert task.run(timeout=60) == 0, task.said
    assert portal.lines() == []
    assert portal.reports[-1]["state"] == "ended"


def test_a_proxy_that_takes_less_at_once_is_sent_less_at_once(task: Task, portal: FakeTaskPortal):
    portal.orders("import os\nfor n in range(40): os.write(1, (b'%03d' % n + b'x' * 996 + b'\\n') * 100)\n")

    def small(method: str, path: str) -> tuple[int, str, bytes] | None:
        too_large = path == "log/" and method == "POST" and len(portal.body) > 300_000
        return (413, "text/html", PAGE) if too_large else None

    portal.in_between = small
    assert task.run(timeout=100) == 0
    assert [line[:3] for line in portal.lines()] == [b"%03d" % n for n in range(40) for _ in range(100)]
    assert portal.gaps == {}
