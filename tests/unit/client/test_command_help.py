"""What the helps of commands name is all that there is."""

from __future__ import annotations

import re

import pytest

from yardmaster.job.spec import Role
from yardmaster_client.cli.main import run


def test_the_help_of_logs_names_every_role(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert run(["jobs", "logs", "--help"]) == 0
    found = re.search(r"Only this role: ([a-z, ]+)\.", capsys.readouterr().out)
    assert found is not None
    assert set(re.split(r", | or ", found[1])) == {role.value for role in Role}
