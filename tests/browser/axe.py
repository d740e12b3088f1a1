"""What axe-core finds on a page: https://github.com/dequelabs/axe-core, from the front end's development packages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SCRIPT = Path(__file__).resolve().parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = {"serious", "critical"}
COLORS = ("color-contrast", "link-in-text-block")
"""The rules that a colour scheme can break."""
WIDTH = ("aria-hidden-focus", "button-name", "label", "link-name", "scrollable-region-focusable")
"""The rules that a width can break: of what is shown there in another way, or not at all."""
_RUN = """(rules) => axe.run(document, {
    resultTypes: ["violations"], ...(rules && { runOnly: { type: "rule", values: rules } }),
}).then((found) => found.violations)"""


@cache
def _script() -> str:
    return SCRIPT.read_text()


def serious_findings(page: Page, rules: Sequence[str] | None = None) -> list[str]:
    """One line for each element that axe finds seriously or critically wrong: rule, place, and what to do. `rules`: by
    these alone."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_script())
    found: list[dict[str, Any]] = page.evaluate(_RUN, rules)
    return [
        f"{one['id']} ({one['impact']}) at {' '.join(map(str, node['target']))}: {node.get('failureSummary', '')}"
        for one in found if one["impact"] in SERIOUS for node in one["nodes"]
    ]  # fmt: skip
