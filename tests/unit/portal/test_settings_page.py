"""The page of settings names every variable that the portal reads, and none that it does not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OF_OTHERS = {"YARDMASTER_URL", "YARDMASTER_TOKEN"}
"""Read by the command and the SDK; the page points to theirs."""


def read_by_settings() -> set[str]:
    files = [
        ROOT / f"platform/portal/{name}.py"
        for name in (
            "settings",
            "rates",
            "timing",
            "minio",
            "object_stores",
            "engine_settings",
            "package_index",
            "dataset_downloads",
            "code_from_git",
            "data_connections",
            "log_settings",
            "schedule_settings",
            "sign_up_settings",
            "accounting_settings",
            "sign_in_settings",
            "outgoing",
            "sweep_settings",
        )
    ]
    files += (ROOT / "platform/portal/up").glob("*.py")
    return {
        node.args[0].value
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "env"
        and isinstance(node.args[0], ast.Constant)
    }


def named_on_the_page() -> set[str]:
    found: set[str] = set()
    for line in (ROOT / "docs/settings.md").read_text().splitlines():
        names = re.findall(r"`(YARDMASTER_[A-Z0-9_]+|…_[A-Z0-9_]+)`", line)
        stem = names[0].rsplit("_", 1)[0] if names else ""
        found |= {stem + name.removeprefix("…") if name.startswith("…") else name for name in names}
    return found


def test_every_variable_that_is_read_is_explained_and_no_other():
    assert named_on_the_page() - OF_OTHERS == read_by_settings()
