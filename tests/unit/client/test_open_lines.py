"""A line that a task has not finished is the last one of a terminal, and no part of a file or pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from yardmaster_client.cli.open_lines import OpenLines
from yardmaster_client.follow import OpenLine


def bar(text: str) -> OpenLine:
    return OpenLine("worker", 0, 3, text)


@pytest.fixture
def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=20, color_system=None)


def test_each_takes_the_place_of_the_one_before_and_a_line_of_its_own_is_left(terminal: Console) -> None:
    lines = OpenLines(terminal, with_task=True)
    lines.show(bar("1/2"))
    lines.show(bar("2/2"))
    lines.clear()
    lines.clear()
    assert terminal.file.getvalue() == "worker-0: 1/2\r\x1b[2Kworker-0: 2/2\r\x1b[2K"


def test_it_never_wraps_and_sends_no_control_characters(terminal: Console) -> None:
    lines = OpenLines(terminal, with_task=False)
    lines.show(bar("\x1b]0;title\x07\x9b2J" + "x" * 100))
    written = terminal.file.getvalue()
    assert len(written) <= 20
    assert not set(written) & set("\x1b\x07\x9b\n")


def test_an_empty_one_leaves_nothing_and_a_pipe_gets_none(terminal: Console) -> None:
    lines = OpenLines(terminal, with_task=False)
    lines.show(bar(""))
    assert terminal.file.getvalue() == ""
    pipe = Console(file=io.StringIO(), force_terminal=False)
    OpenLines(pipe, with_task=False).show(bar("1/2"))
    assert pipe.file.getvalue() == ""
