"""What the helps and the page of the commands name is all that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yardmaster.job.spec import Role
from yardmaster_client.cli.main import app, run

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"


def test_the_help_of_logs_names_every_role(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert run(["jobs", "logs", "--help"]) == 0
    found = re.search(r"Only this role: ([a-z, ]+)\.", capsys.readouterr().out)
    assert found is not None
    assert set(re.split(r", | or ", found[1])) == {role.value for role in Role}


def test_the_page_lists_every_subject_once() -> None:
    (listed,) = re.findall(r"`yardmaster SUBJECT --help` lists [^:]+: ([^.]+)\.", PAGE.read_text(encoding="utf-8"))
    subjects = [group.name or "" for group in app.registered_groups]
    assert sorted(re.findall(r"`([a-z-]+)`", listed)) == sorted(subjects)
