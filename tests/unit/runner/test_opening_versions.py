"""Notebooks that open a version: made once, never over what the user wrote, with code that says only what it should."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

from yardmaster_runner.workbench.opening import CELLS, notebook_for

ONE, OTHER = "01a214d8-c46d-7265-ae3a-b95d95c603a4", "01a214d8-c46d-7265-ae3a-000000000000"


def cells(home: Path, path: str) -> list[str]:
    return ["".join(one["source"]) for one in json.loads((home / path).read_text())["cells"]]


@pytest.mark.parametrize("kind", CELLS)
def test_its_last_cell_opens_the_version(tmp_path: Path, kind: str):
    path = notebook_for(str(tmp_path), kind, ONE, "digits@2")
    assert path == f"From the portal/{kind} digits@2.ipynb"
    *_, last = cells(tmp_path, path)
    called = {"code": "portal.code.open", "dataset": "portal.datasets.local", "model": "portal.models.local"}[kind]
    assert f"{called}('{ONE}'" in last
    ast.parse(last)


def test_what_is_there_is_not_written_again(tmp_path: Path):
    path = notebook_for(str(tmp_path), "dataset", ONE, "digits@2")
    (tmp_path / path).write_text(f"mine, of {ONE}")
    assert notebook_for(str(tmp_path), "dataset", ONE, "digits@2") == path
    other = notebook_for(str(tmp_path), "dataset", OTHER, "digits@2")
    assert other == f"From the portal/dataset digits@2 {OTHER}.ipynb"
    assert OTHER in cells(tmp_path, other)[-1]
    assert (tmp_path / path).read_text() == f"mine, of {ONE}"


@pytest.mark.parametrize("name", ["../../x@1", "'); evil('@1", "a\nb@1", "x" * 500, "..", "", "名前@3"])
def test_a_name_leads_nowhere_else_and_is_no_code(tmp_path: Path, name: str):
    path = notebook_for(str(tmp_path), "code", ONE, name)
    assert os.path.dirname(path) == "From the portal"
    assert [one.name for one in tmp_path.rglob("*.ipynb")] == [os.path.basename(path)]
    source = cells(tmp_path, path)[-1]
    calls = {ast.unparse(one.func) for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)}
    assert calls == {
        "Path", "folder.exists", "portal.code.open", "sorted", "str", "one.relative_to", "folder.rglob", "one.is_file",
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "version"), [("job", ONE), ("code", "digits@2"), ("code", "")])
def test_what_is_no_version_is_refused(tmp_path: Path, kind: str, version: str):
    with pytest.raises(ValueError, match=r"."):
        notebook_for(str(tmp_path), kind, version, "x")
    assert list(tmp_path.iterdir()) == []
