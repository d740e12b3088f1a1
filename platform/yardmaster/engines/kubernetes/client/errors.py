"""What an answer of the API server that is no success means, as typed errors. Pure.

`Absent`, `Conflict`, `Left`, `Expired` and `Busy` have a meaning within the engine; to all others they say: try
again. `Forbidden` has one, too; to all others it is the operator's matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from yardmaster.errors import Misconfigured, Problem, SpecRejected, Unavailable, YardmasterError

_WAIT = "Nothing to do: the job continues when the cluster responds."
_LONGEST_REST = 60.0


class Absent(Unavailable):
    """404: it, or the namespace it should be in, is not there."""


class Conflict(Unavailable):
    """409: it was changed meanwhile."""


class Forbidden(Misconfigured):
    """403: the portal's account lacks the right, there or everywhere. So a server also speaks of a namespace that is
    gone, where the rights were bound in it."""


class Left(Unavailable):
    """What was there before under this name has not gone yet."""

    def __init__(self, name: str) -> None:
        message = f"The cluster is still deleting what was there before under the name {name}."
        super().__init__(message, remedy="It is created again after that.")


class Expired(Unavailable):
    """410: what the server remembers does not reach back that far."""


class Busy(Unavailable):
    """429, and 503 with a time: come again after so many `seconds`, not before."""

    seconds: float = 1.0


def trouble_of(status: int, body: bytes, what: str, retry_after: str | None = None) -> YardmasterError:
    """The error for an answer with this status; `what` was asked, for people ("create pods")."""
    answer = _status_object(body)
    message = str(answer.get("message") or body[:300].decode(errors="replace") or f"HTTP {status}")
    details = answer.get("details")
    details = details if isinstance(details, Mapping) else {}
    if status == 404:
        return Absent(message)
    if status == 410:
        return Expired(message)
    if status == 409:
        return Conflict(message)
    if status == 401:
        return Misconfigured(f"The cluster does not know the portal ({what}).", remedy="Renew its kubeconfig.")
    if status == 403:
        return _forbidden(message, what)
    if status == 422:
        return SpecRejected(_problems(message, details))
    if status == 429 or (status == 503 and retry_after):
        busy = Busy(f"The cluster is overloaded and could not {what}: {message}", remedy=_WAIT)
        busy.seconds = _seconds_of(retry_after)
        return busy
    if status == 408 or status >= 500:
        return Unavailable(f"The cluster did not {what}: {message}", remedy=_WAIT)
    return Misconfigured(f"The cluster refused to {what}: {message}", remedy="See docs/kubernetes.md.")


def no_answer(error: Exception, what: str) -> Unavailable:
    """The server was not reached, or its answer was interrupted."""
    return Unavailable(f"The cluster did not answer ({what}): {error}", remedy=_WAIT)


def _seconds_of(retry_after: str | None) -> float:
    """A date, which servers of this kind do not send, counts as a second."""
    text = (retry_after or "").strip()
    return min(_LONGEST_REST, float(text)) if text.isdigit() else Busy.seconds


def _forbidden(message: str, what: str) -> YardmasterError:
    if "exceeded quota" in message:
        return Unavailable(f"The cluster's quota of the namespace is used up: {message}", remedy="Wait for other jobs.")
    if "being terminated" in message:
        return Unavailable(f"The namespace is being removed: {message}", remedy="Launch in another namespace.")
    return Forbidden(
        f"The cluster forbids the portal to {what}: {message}",
        remedy="Give the portal's account the rights in deploy/kubernetes/rights.yaml, see docs/kubernetes.md.",
    )


def _problems(message: str, details: Mapping[str, Any]) -> list[Problem]:
    remedy = "Change the job's roles, or ask an administrator what the cluster takes."
    causes = details.get("causes")
    if not isinstance(causes, list) or not causes:
        return [Problem("roles", "refused_by_cluster", f"The cluster refuses the job: {message}", remedy)]
    return [
        Problem(
            "roles",
            "refused_by_cluster",
            f"The cluster refuses {one.get('field', 'the job')}: {one.get('message', '')}",
            remedy,
        )
        for one in causes[:20]
        if isinstance(one, Mapping)
    ]


def _status_object(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, Mapping) else {}
