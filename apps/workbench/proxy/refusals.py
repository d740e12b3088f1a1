"""What the proxy refuses with itself, in words for people. Pure. Not here: what the portal's tables refuse."""

from __future__ import annotations

from apps.workbench.proxy.contract import Refusal
from apps.workbench.proxy.headers import METHODS

UNREACHABLE = "session_unreachable"
"""The code of the refusal where the session runs, as far as the portal knows, and its gate does not answer."""


def unreachable() -> Refusal:
    """The session runs, as far as the portal knows, and its gate does not answer."""
    return Refusal(
        502, UNREACHABLE, "The session does not answer", "The program of this session cannot be reached now.",
        "Wait a few seconds and load the page again.",
    )  # fmt: skip


def not_answered() -> Refusal:
    """The gate let the request through, and the program closed its connection: that says nothing about others."""
    return Refusal(
        502, "answer_missing", "The session did not answer",
        "The program of this session has closed the connection without an answer.",
        "Load the page again; if that does not help, restart the session.",
    )  # fmt: skip


def misdirected() -> Refusal:
    return Refusal(
        421, "host_not_known", "No session here", "This host is that of no session.", "Open the session on the portal."
    )


def not_found() -> Refusal:
    return Refusal(
        404, "not_found", "No session here", "There is no session at this address.", "Open the session on the portal."
    )


def not_allowed(method: str) -> Refusal:
    return Refusal(
        405,
        "method_not_allowed",
        "Not accepted",
        f"Requests of the method {method[:20]} do not pass.",
        f"Use one of: {', '.join(METHODS)}.",
    )


def foreign() -> Refusal:
    return Refusal(
        403, "origin_refused", "Not accepted", "The request comes from a page of another origin.",
        "Open the session from the portal, and act on its own pages.",
    )  # fmt: skip


def portal_busy() -> Refusal:
    return Refusal(
        503, "portal_busy", "The portal is busy", "It can open no more connections to sessions now.",
        "Load the page again in a minute.",
    )  # fmt: skip
