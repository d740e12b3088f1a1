"""Registering, changing, deleting and checking data connections. No cluster is connected to here: a worker looks at it
(`worker`). No event or error contains the value of a secret.

Not here: who may call it (the views ask `namespaces.selectors`), and which jobs use a connection (`apps.jobs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.api.allowances import take
from apps.audit.changes import changes
from apps.audit.services import record
from apps.connections.models import DataConnection, State
from apps.connections.selectors import SECRETS
from apps.dispatch.messages import CHECK_CONNECTION, enqueue
from apps.errors import Conflict, Invalid, TooMany
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import refuse_closed
from apps.secrets.selectors import secret_names
from yardmaster.allowances import Allowance, Taking
from yardmaster.errors import Problem, SpecRejected
from yardmaster.ignite.nodes import nodes_of, text_of
from yardmaster.job.spec_connection import CONNECTION_NAME
from yardmaster.job.spec_limits import shorten
from yardmaster.quantity import some_of

MOST = 50
"""Connections of a namespace."""
CHECKS_A_MINUTE = 12
"""Of one user."""
_MINUTE = 60
_FACTS = ("hosts", "tls", *SECRETS)


def connection_set(
    *, namespace: Namespace, name: str, actor: User, values: Mapping[str, Any]
) -> tuple[DataConnection, bool]:
    """Register the connection, or give it these hosts, TLS and names of secrets in the place of those it had; then look
    at it. Whether it is new. Raises `Invalid` and `Conflict`."""
    said = {key: values.get(key) or ("" if key != "tls" else False) for key in _FACTS}
    said["hosts"] = _checked(namespace, name, said)
    _refuse_often(actor)
    now = timezone.now()
    with transaction.atomic():
        locked = Namespace.objects.select_for_update().get(pk=namespace.pk)
        refuse_closed(locked)
        found = DataConnection.objects.filter(namespace=namespace, name=name).first()
        is_new = found is None
        if found is None:
            _refuse_full(namespace)
            found = DataConnection(namespace=namespace, name=name, created_by=actor, created_at=now)
        before = {key: getattr(found, key) for key in _FACTS}
        for key, value in said.items():
            setattr(found, key, value)
        found.changed_at = now
        if is_new or before != said:
            found.found, found.found_at = None, None
        _want_look(found, actor)
        found.save(force_insert=is_new)
        if is_new:
            record(actor, "connection.create", f"connection:{found.pk}", namespace=namespace, name=name, **said)
        else:
            _record_change(actor, found, changes(before, said))
        enqueue(CHECK_CONNECTION, found.pk)
    return found, is_new


def connection_check_ask(*, connection: DataConnection, actor: User) -> DataConnection:
    """Have a worker look at it. One that is under way is not begun twice."""
    refuse_closed(connection.namespace)
    with transaction.atomic():
        locked = DataConnection.objects.select_for_update().select_related("namespace").get(pk=connection.pk)
        if locked.state == State.CHECKING:
            return locked
        _refuse_often(actor)
        _want_look(locked, actor)
        locked.save()
        record(
            actor, "connection.check", f"connection:{locked.pk}", namespace=locked.namespace, name=locked.name,
            hosts=locked.hosts,
        )  # fmt: skip
        enqueue(CHECK_CONNECTION, locked.pk)
    return locked


def connection_delete(
    *, connection: DataConnection, actor: User, used_by: Sequence[str] = (), force: bool = False
) -> None:
    """Delete it. `used_by`: what still needs it, in words; then it is a conflict, unless it is forced."""
    if used_by and not force:
        raise Conflict(
            f"The data connection {connection.name} is still used by {some_of(used_by)}.",
            "connection_in_use",
            remedy="Wait until they have ended, or delete it anyway: tasks that start later will then fail.",
        )
    with transaction.atomic():
        if DataConnection.objects.filter(pk=connection.pk).delete()[0]:
            facts = {"name": connection.name, "forced": bool(used_by)}
            record(
                actor, "connection.delete", f"connection:{connection.pk}", namespace=connection.namespace, **facts
            )  # fmt: skip


def connections_clear(namespace: Namespace, actor: User | None) -> int:
    """Delete every connection of a namespace that is removed. Returns how many there were."""
    with transaction.atomic():
        found = list(DataConnection.objects.filter(namespace=namespace).values_list("pk", "name"))
        for pk, name in found:
            record(actor, "connection.delete", f"connection:{pk}", namespace=namespace, name=name)
        DataConnection.objects.filter(namespace=namespace).delete()
    return len(found)


def _record_change(actor: User, connection: DataConnection, facts: Mapping[str, Any]) -> None:
    action = "connection.change" if facts else "connection.check"
    subject, namespace = f"connection:{connection.pk}", connection.namespace
    record(actor, action, subject, namespace=namespace, **({"name": connection.name} | dict(facts)))


def _want_look(connection: DataConnection, actor: User) -> None:
    now = timezone.now()
    connection.state, connection.problem, connection.tries = State.CHECKING, None, 0
    connection.asked_by, connection.asked_at, connection.ended_at = actor, now, None
    connection.next_look_at, connection.lease, connection.leased_until = now, None, None


def _checked(namespace: Namespace, name: str, said: Mapping[str, Any]) -> str:
    """The hosts in one form. Raises `Invalid` with all that is wrong."""
    found: list[Problem] = []
    if not CONNECTION_NAME.fullmatch(name):
        message = "A name has up to 100 letters, digits, dots, _ and -, and begins with a letter or a digit."
        found.append(Problem("name", "invalid", message, "Enter a name such as cats.", shorten(name)))
    hosts = ""
    try:
        hosts = text_of(nodes_of(said["hosts"], settings.YARDMASTER_IGNITE_POLICY))
    except SpecRejected as error:
        found += error.problems
    found += _bad_secrets(namespace, said)
    if found:
        raise Invalid(found)
    return hosts


def _bad_secrets(namespace: Namespace, said: Mapping[str, Any]) -> list[Problem]:
    found = []
    known = set(secret_names(namespace))
    for column in SECRETS:
        if said[column] and said[column] not in known:
            message = f"{namespace.slug} has no secret of this name that tasks may use."
            remedy = (
                f"Create it on the page of the namespace's secrets, or with `yardmaster secrets set {said[column]}`."
            )
            found.append(Problem(column, "unknown_secret", message, remedy, shorten(said[column])))
    if said["tls"] and not said["certificate"] and not said["ca"]:
        message = "TLS needs a CA or a certificate with CAs, to verify the cluster's nodes."
        found.append(Problem("ca", "missing", message, "Name the secret with the CA of the cluster, as PEM."))
    if not said["tls"]:
        found += [
            Problem(column, "conflict", "This is only used with TLS.", "Turn on TLS, or leave it empty.", said[column])
            for column in ("certificate", "ca")
            if said[column]
        ]
    if said["certificate_password"] and not said["certificate"]:
        message = "A password is given, but no certificate."
        found.append(Problem("certificate_password", "conflict", message, "Name the certificate, or leave it empty."))
    if bool(said["username"]) != bool(said["password"]):
        column = "password" if said["username"] else "username"
        message = "A user name and a password must be given together."
        found.append(Problem(column, "missing", message, "Name a secret for each, or for neither."))
    return found


def _refuse_full(namespace: Namespace) -> None:
    if DataConnection.objects.filter(namespace=namespace).count() >= MOST:
        raise Conflict(
            f"The namespace {namespace.slug} already has {MOST} data connections, which is the limit.",
            "too_many_connections",
            remedy="Delete one that is not used.",
        )


def _refuse_often(actor: User) -> None:
    taking = Taking(Allowance("connections", CHECKS_A_MINUTE, _MINUTE), f"user {actor.pk}")
    if take([taking]).over is not None:
        raise TooMany(
            f"You can have data connections checked at most {CHECKS_A_MINUTE} times per minute.",
            "rate_limited",
            wait=_MINUTE,
        )
