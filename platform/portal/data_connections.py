"""To which clusters of Apache Ignite the portal connects for its users."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from portal import env
from yardmaster.ignite.nodes import ignite_policy
from yardmaster.outgoing.targets import Policy

PORTS = "10800-10900"
"""Where Ignite listens for thin clients: it takes the first of these that is free."""


def policy() -> Policy:
    """Raises `ImproperlyConfigured`."""
    try:
        return ignite_policy(env.words("YARDMASTER_IGNITE_HOSTS"), env.words("YARDMASTER_IGNITE_PORTS", PORTS))
    except ValueError as error:
        raise ImproperlyConfigured(f"YARDMASTER_IGNITE_HOSTS or YARDMASTER_IGNITE_PORTS: {error}.") from error
