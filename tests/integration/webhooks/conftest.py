"""The world of jobs, for what is told of it; receivers in this process; and a clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from apps.namespaces.models import Namespace
from apps.webhooks.models import Delivery, Webhook
from apps.webhooks.services import webhook_create
from apps.webhooks.worker import webhook_deliver
from tests.integration.jobs.conftest import engine_settings, postgres_world, sent, stores, world
from tests.real.postgres import postgres_cluster, postgres_db
from tests.real.receiver import Receiver, receiver_on
from yardmaster.outgoing.events import EVENTS
from yardmaster.outgoing.targets import policy_of

__all__ = ["engine_settings", "postgres_cluster", "postgres_db", "postgres_world", "sent", "stores", "world"]


@pytest.fixture(autouse=True)
def receivers_inside(settings):
    """Receivers of tests are on this machine, at any port."""
    ports = frozenset(range(1, 65_536))
    policy = policy_of(["127.0.0.0/8"], allow_http=True, ports=ports)
    settings.YARDMASTER_OUTGOING = replace(settings.YARDMASTER_OUTGOING, policy=policy)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiver_on() as one:
        yield one


@pytest.fixture
def mine(ada) -> Namespace:
    return Namespace.objects.get(owner=ada)


class Clock:
    def __init__(self) -> None:
        self.now = timezone.now() + timedelta(minutes=1)  # what is written now is due

    def __call__(self) -> datetime:
        return self.now

    def on(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def hook(namespace: Namespace, user, url: str, **more) -> tuple[Webhook, str]:
    return webhook_create(namespace=namespace, actor=user, url=url, **{"events": list(EVENTS)} | more)


def deliver_all(webhook: Webhook, clock: Clock) -> list[Delivery]:
    """What is due, one after the other."""
    done = []
    while (delivery := webhook_deliver(webhook.pk, clock=clock)) is not None:
        done.append(delivery)
    return done
