"""Which answers are the portal's own, and what each means. Pure.

Between a task and its portal there may be a proxy, a firewall's page, or a web server that knows another Host. What
such a thing answers says nothing of the job: not 403, not 404 or 413, and not 200 with a page to sign in at. So only
`application/problem+json` with a status and a code that the task API has counts as the portal's word; all else is as
good as no answer. The portal's views and this list are held together by tests/contract/test_task_api_codes.py.
"""

from __future__ import annotations

import http.client
import json
from typing import Any, Dict, Mapping, Optional

PROBLEM = "application/problem+json"
LATER_STATUSES = (408, 425, 429)
"""Below 500, and to be tried again all the same."""

TOKEN_CODES = frozenset({"not_authenticated", "permission_denied"})
"""The token is not, or no longer, good."""

GONE_CODES = frozenset({"attempt_over", "job_gone", "not_found", "unknown_task"})
"""What the task speaks of is not there, and does not come (back)."""

FINAL_CODES = GONE_CODES | frozenset(
    {
        "address_refused",
        "checksum_mismatch",
        "conflict",
        "environment_taken",
        "invalid",
        "key_refused",
        "method_not_allowed",
        "not_acceptable",
        "object_missing",
        "packages_offline",
        "other_bytes",
        "parts_missing",
        "parts_refused",
        "past_the_end",
        "quota_full",
        "secret_missing",
        "secret_too_large",
        "secret_unreadable",
        "spec_unreadable",
        "storage_error",
        "too_large",
        "too_many_open_uploads",
        "unsupported_media_type",
        "upload_missing",
        "upload_not_complete",
        "upload_not_open",
        "upload_used",
        "written_by_another",
    }
)
"""The portal does not do this, now or later. `malformed` and `host_refused` are not among them: a request that reaches
the portal as none, or under a name that is not the portal's, was changed on its way or was sent to the wrong place."""

LATER_CODES = frozenset(
    {
        "error",
        "misconfigured",
        "rate_limited",
        "storage_full",
        "throttled",
        "too_many_at_once",
        "too_slow",
        "unavailable",
    }
)
"""The portal is there, and may do it later."""

CODES = TOKEN_CODES | FINAL_CODES | LATER_CODES


class PortalAway(Exception):
    """No answer of the portal's, or one that says "later". Try again; `retry_after` where a time was named.

    `has_answered`: it is there and will take this later. Of another 5xx nothing says that it will ever. `status`: of
    the answer, whosever it is; 0 where there was none."""

    def __init__(self, message: str, retry_after: float = 0.0, *, has_answered: bool = False, status: int = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.has_answered = has_answered
        self.status = status


class PortalRefused(Exception):
    """The token is not (or no longer) accepted."""


class PortalRejected(Exception):
    """The portal will not do this, now or later. `answer` is its problem, with the code."""

    def __init__(self, status: int, message: str, answer: Mapping[str, Any]) -> None:
        super().__init__("%d %s" % (status, message))
        self.status = status
        self.answer = answer

    @property
    def is_gone(self) -> bool:
        """Whether what was spoken of is not there, so that nothing of the kind is taken again."""
        return self.answer.get("code") in GONE_CODES


def meaning(status: int, kind: str, content: bytes, retry_after: str, what: str) -> Dict[str, Any]:
    """The JSON object of a 2xx answer; `kind` is its Content-Type. Raises what any other answer means."""
    answer = json_object(content)
    if 200 <= status < 300:
        if answer is None:
            raise PortalAway("%s was answered by something that is not the portal" % what, status=status)
        return answer
    code = portals_code(status, kind, answer)
    wait = float(retry_after) if retry_after.isdigit() else 0.0
    if not code:
        message = "%d %s: %s, and not in the portal's words" % (status, what, http.client.responses.get(status, "?"))
        raise PortalAway(message, wait, status=status)
    problem = answer or {}
    message = "%s: %s" % (what, problem.get("detail") or problem.get("title") or code)
    if code in LATER_CODES or status >= 500 or status in LATER_STATUSES:
        has_answered = status < 500 or bool(retry_after)
        raise PortalAway("%d %s" % (status, message), wait, has_answered=has_answered, status=status)
    if code in TOKEN_CODES:
        raise PortalRefused("%d %s" % (status, message))
    raise PortalRejected(status, message, problem)


def portals_code(status: int, kind: str, answer: Any) -> str:
    """The code of an answer that is the portal's word; empty for one that is not."""
    if kind.partition(";")[0].strip().lower() != PROBLEM or not isinstance(answer, dict):
        return ""
    code = answer.get("code")
    is_whole = status >= 400 and answer.get("status") == status and isinstance(code, str)
    return str(code) if is_whole and code in CODES else ""


def json_object(content: bytes) -> Optional[Dict[str, Any]]:
    """What an answer says; None where that is anything else."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
