"""Every Python file that the documentation names with its folder is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMED = re.compile(r"`((?:[\w.]+/)+\w+\.py)`")
FOLDERS = ("apps", "platform", "celery_worker", "tests", "examples", "deploy")
FILES = [f"/{one.relative_to(ROOT)}" for folder in FOLDERS for one in (ROOT / folder).rglob("*.py")]


@pytest.mark.parametrize("doc", DOCS, ids=lambda one: str(one.relative_to(ROOT)))
def test_the_files_that_a_page_names_are_there(doc: Path):
    named = NAMED.findall(doc.read_text())
    assert [path for path in named if not any(file.endswith(f"/{path}") for file in FILES)] == []


def test_a_path_that_is_not_there_is_found():
    assert NAMED.findall("see `apps/jobs/none.py` and `here.py`") == ["apps/jobs/none.py"]
