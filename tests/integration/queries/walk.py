"""Every address of the portal that can be looked at, and how many statements of the database it may need.

Addresses come from the routes (`security.matrix`), with the ids of a populated team; questions that change what a page
reads (sorted, filtered) come from the pages of the browser's tests. So a new route is walked as the others are.

Not here: how the statements are counted, and by whom the addresses are asked.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.browser.addresses import ADDRESSES
from tests.integration.security.matrix import Route, patterns, routes

if TYPE_CHECKING:  # those who ask over the network have no settings
    from tests.integration.security.populated import Populated

LIST, DETAIL = 8, 12
WALKERS = ("administrator", "manager", "member")
_LISTS = {one.view for one in ADDRESSES if one.is_list}
_SIGNS_OUT = {"/accounts/logout/"}


@dataclass(frozen=True)
class Asked:
    """An address, its route, and the name of its view."""

    path: str
    route: str
    view: str

    @property
    def is_api(self) -> bool:
        return self.path.startswith("/api/")

    def group(self, content_type: str, body: bytes) -> str:
        """What it is, told by its answer where its route does not tell."""
        if not self.is_api:
            return "list pages" if self.view in _LISTS else "admin pages" if _is_admin(self.path) else "other pages"
        return "API lists" if _is_list(content_type, body) else "API details"


def at_most(group: str) -> int:
    return LIST if group in ("list pages", "API lists") else DETAIL


def walk(populated: Populated) -> list[Asked]:
    """In the order of the routes; each route as it is, and with each question that the browser's tests ask there."""
    views = dict(patterns())
    questions = defaultdict(set)
    for one in ADDRESSES:
        if "?" in one.path:
            questions[one.view].add(one.path.partition("?")[2])
    found = []
    for route in routes():
        if not route.is_safe or route.is_task:
            continue
        view = views[route.pattern].name or ""
        path = populated.address(route)
        if path not in _SIGNS_OUT:
            found += [Asked(path, f"/{route.pattern}", view)]
            found += [Asked(f"{path}?{_with_ids(one, populated)}", f"/{route.pattern}", view)
                      for one in sorted(questions.get(view, ()))]  # fmt: skip
    return found


def _with_ids(question: str, populated: Populated) -> str:
    """The ids of the browser's world are those of a job, or of a template."""
    known = {"template": populated.ids["template_id"]}
    return re.sub(r"\{([\w-]+)\}", lambda found: str(known.get(found[1], populated.job.pk)), question)


def _is_admin(path: str) -> bool:
    return path.startswith("/admin/")


def _is_list(content_type: str, body: bytes) -> bool:
    if not content_type.startswith("application/json"):
        return False
    answer: Any = json.loads(body)
    return isinstance(answer, list) or (isinstance(answer, dict) and {"results", "next"} <= answer.keys())


__all__ = ["DETAIL", "LIST", "WALKERS", "Asked", "Route", "at_most", "walk"]
