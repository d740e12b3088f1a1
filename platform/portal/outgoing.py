"""Where messages about events may be sent, and how many webhooks there may be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.core.exceptions import ImproperlyConfigured

from portal import env
from yardmaster.outgoing.targets import Policy, policy_of


@dataclass(frozen=True)
class Outgoing:
    policy: Policy
    per_namespace: int
    """The most webhooks of a namespace."""
    failing_for: timedelta
    """A receiver that has failed for so long is switched off."""
    waits_after: timedelta
    """How long a job has been queued when `job.waiting` is sent."""


def outgoing() -> Outgoing:
    """Raises `ImproperlyConfigured`."""
    return Outgoing(
        policy=_policy(),
        per_namespace=env.number("YARDMASTER_WEBHOOKS_PER_NAMESPACE", 20, least=0),
        failing_for=timedelta(days=env.number("YARDMASTER_WEBHOOK_FAILING_DAYS", 5, least=1)),
        waits_after=timedelta(minutes=env.number("YARDMASTER_WEBHOOK_WAIT_MINUTES", 60, least=1)),
    )


def _policy() -> Policy:
    ports = env.words("YARDMASTER_WEBHOOK_PORTS", "443,8443")
    if bad := [one for one in ports if not (one.isascii() and one.isdigit() and 0 < int(one[:6]) < 65_536)]:
        raise ImproperlyConfigured(f"YARDMASTER_WEBHOOK_PORTS: {bad[0]!r} is not a port.")
    try:
        return policy_of(
            env.words("YARDMASTER_WEBHOOK_ALLOWED_HOSTS"),
            allow_http=env.flag("YARDMASTER_WEBHOOK_HTTP"),
            ports=frozenset(int(one) for one in ports),
            seconds=float(env.number("YARDMASTER_WEBHOOK_SECONDS", 10, least=1)),
        )
    except ValueError as error:
        raise ImproperlyConfigured(f"YARDMASTER_WEBHOOK_ALLOWED_HOSTS: {error}.") from error
