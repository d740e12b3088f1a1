"""Tables and facts: IDs and names are whole, in a terminal of any width and in a pipe."""

from __future__ import annotations

import io
import sys

import pytest
from rich.text import Text

from yardmaster_client.cli import output
from yardmaster_client.cli.job_views import print_jobs
from yardmaster_client.models import Job

ID = "01a2271b-8165-7cc5-8d05-0123456789ab"
NAME = "mnist-parameter-server-2026"
REASON = "Waits for 4 CPUs on the engine local, of which 1.5 are free."


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """What was printed, without styles."""
        return Text.from_ansi(self.getvalue()).plain.splitlines()


def in_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> _Terminal:
    """Standard output as a terminal of this width."""
    for name, value in {"COLUMNS": str(width), "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    return terminal


def a_job() -> Job:
    return Job(ID, NAME, "QUEUED", owner="ada", message=REASON)


@pytest.mark.parametrize("width", [20, 80, 120, 200])
def test_a_terminal_never_breaks_ids_and_names(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    terminal = in_terminal(monkeypatch, width)
    print_jobs([a_job()])
    first = terminal.lines()[1]
    assert first.startswith(f"{ID}  {NAME}  QUEUED")


def test_other_columns_are_cut_to_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = in_terminal(monkeypatch, 80)
    output.print_table(["NAME", "STATE", "NOTE", "ID"], [[NAME, "ready", REASON, ID]])
    head, row = terminal.lines()
    assert row == f"{NAME}  ready  {REASON[:7]}…  {ID}"  # all that is not whole, at its least
    assert head.index("ID") == row.index(ID)
    output.print_table(["STATE", "NOTE", "ID"], [["ready", REASON.replace(" ", "_"), ID]])
    row = terminal.lines()[3]
    assert "…" in row
    assert len(row) == 80


def test_a_sentence_with_space_continues_below(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = in_terminal(monkeypatch, 80)
    output.print_table(["ID", "NOTE"], [[ID, REASON], [ID, "short"]])
    _, *rows = terminal.lines()
    assert len(rows) == 3
    assert " ".join(one.removeprefix(ID).strip() for one in rows[:2]) == REASON
    assert all(len(one) <= 80 for one in rows)


def test_a_pipe_gets_a_row_per_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "40", "FORCE_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    output.print_table(["ID", "NAME", "REASON"], [[ID, NAME, f"{REASON}\n{REASON}\tend"], [ID, NAME, ""]])
    _, first, second = Text.from_ansi(capsys.readouterr().out).plain.splitlines()
    assert first == f"{ID}  {NAME}  {REASON} {REASON} end"
    assert second == f"{ID}  {NAME}"


def test_facts_are_whole_in_a_pipe_and_wrapped_in_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [("id", ID), ("why", Text(f"{REASON} {REASON}")), ("none", "")]
    output.print_facts(facts)
    assert capsys.readouterr().out.splitlines() == [f"id   {ID}", f"why  {REASON} {REASON}"]
    terminal = in_terminal(monkeypatch, 70)
    output.print_facts(facts)
    lines = terminal.lines()
    assert lines[0] == f"id   {ID}"
    assert len(lines) == 3
    assert all(len(one) <= 70 for one in lines)
    narrow = in_terminal(monkeypatch, 30)
    output.print_facts(facts)
    assert narrow.lines()[0] == f"id   {ID}"
