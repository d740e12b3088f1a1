"""The data connection of a job: is it there, with the secrets that its tasks need?"""

from __future__ import annotations

from apps.connections.models import DataConnection
from apps.connections.selectors import connection_names, connections_of, secrets_needed
from apps.namespaces.models import Namespace
from apps.secrets.selectors import secret_names
from yardmaster.errors import Problem
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_limits import shorten

NAMED = 10


def connection_problems(namespace: Namespace, spec: TrainingSpec) -> list[Problem]:
    """What of the spec's connection this namespace does not have. The cluster itself is not asked."""
    if spec.connection is None:
        return []
    found = connections_of(namespace).filter(name=spec.connection.name).first()
    if found is not None:
        return _lacking(namespace, found)
    known = connection_names(namespace)
    message = f"{namespace.slug} has no data connection of this name."
    remedy = "Register it on the page Data connections, or with `yardmaster connections set NAME --host HOST`."
    if known:
        remedy = f"Use one of: {', '.join(known[:NAMED])}. Or register it on the page Data connections."
    return [Problem("connection.name", "unknown_connection", message, remedy, shorten(spec.connection.name))]


def _lacking(namespace: Namespace, connection: DataConnection) -> list[Problem]:
    known = set(secret_names(namespace))
    return [
        Problem(
            "connection.name",
            "secret_missing",
            f"The secret {name} of this data connection no longer exists.",
            f"Create {name} again, or change the connection.",
            connection.name,
        )
        for name in secrets_needed(connection).values()
        if name not in known
    ]
