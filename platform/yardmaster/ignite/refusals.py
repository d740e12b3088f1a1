"""Why a cluster could not be looked at, in the words of a connection: its fields, and what helps. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from yardmaster.errors import Problem
from yardmaster.storable import storable
from yardmaster_runner.data.ignite_reader.errors import IgniteUnavailable, ServerRefusal

LONGEST = 600
_FIELDS = {"ignite_sign_in": "password", "ignite_certificate": "certificate"}
_REMEDIES = {
    "ignite_sign_in": "Check the secrets that hold the user name and the password, then check the connection again.",
    "ignite_certificate": "Check the secrets that hold the certificate, its password and the CA, and whether the "
    "cluster uses TLS.",
    "ignite_unavailable": "Check hosts and ports, that the cluster runs, and that the portal's machine can reach it.",
}
_OTHER = "Check the connection again later, or ask who runs the cluster."
_FILE = re.compile(r"/proc/self/fd/\d+")
_REST = re.compile(r"\. (?:Give|If it requires TLS|Check)\b.*|: (?:give|leave out)\b.*", re.DOTALL)
"""What the reader advises a script to do; a connection has its own remedies."""
_WORDS = (("this script", "the portal"), (" in certfile", ""), ("cert_password", "the certificate's password"))


class NotLooked(Exception):
    """The cluster was not looked at."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def problem_of(error: Exception, task: Mapping[str, Any]) -> Problem:
    """What the reader says of the whole cluster, as a problem of the connection."""
    code = "ignite_refused" if isinstance(error, ServerRefusal) else str(getattr(error, "code", "ignite_data"))
    message = str(error)
    if isinstance(error, ServerRefusal):
        message = f"The cluster refuses to list its caches: {message}"
    if isinstance(error, IgniteUnavailable):
        code = "ignite_unavailable"
    user = task["secrets"].get("username")
    if user:  # it is a secret as well, and the server repeats it
        message = message.replace(repr(user), "of this connection").replace(user, "…")
    for old, new in _WORDS:
        message = message.replace(old, new)
    message = _REST.sub(".", _FILE.sub("the connection's secret", message)).strip()
    message = message[:1].upper() + message[1:LONGEST] + ("" if message.endswith((".", "?")) else ".")
    return Problem(_FIELDS.get(code, "hosts"), code, message, _REMEDIES.get(code, _OTHER), task["hosts"])


def too_costly() -> Problem:
    """It took more than one look may take."""
    message = "The check needed more time, memory or data than its limits allow."
    return Problem(
        "hosts",
        "ignite_too_costly",
        message,
        "Use the secrets of a user that may read fewer caches, or try again later.",
    )


def problem_from(said: Mapping[str, Any]) -> Problem:
    """The problem in what a process wrote: texts, cut to what is shown."""
    longest = {"field": 40, "code": 60, "message": 1_000, "remedy": 600, "value": 300}
    return Problem(**{name: storable(str(said.get(name, ""))[:most]) for name, most in longest.items()})
