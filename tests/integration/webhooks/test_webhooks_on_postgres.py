"""What only a real database shows of webhooks: several workers at once."""

from __future__ import annotations

import pytest

from apps.accounts.models import User
from apps.dispatch.outbox import happened
from apps.namespaces.selectors import namespace_for
from apps.notifications.happenings import happenings_note
from apps.webhooks.models import Delivery, State
from apps.webhooks.worker import webhook_deliver
from tests.integration.accounts.test_accounts_on_postgres import at_once
from tests.integration.webhooks.conftest import Clock, hook
from tests.real.receiver import receiver_on
from yardmaster.ids import new_id

pytestmark = pytest.mark.postgres


def test_of_workers_that_are_woken_at_once_each_message_is_sent_by_one(postgres_world):
    ada = User.objects.create_user("ada", "ada@example.org")
    mine = namespace_for(ada, None)
    with receiver_on() as receiver:
        webhook, _ = hook(mine, ada, receiver.url(), events=["model_version.created"])
        for number in range(3):
            happened("model_version.created", new_id(), mine.pk, "model_version", model="digits", number=number)
        at_once(lambda number: happenings_note())
        assert Delivery.objects.count() == 3
        clock = Clock()
        while Delivery.objects.filter(state=State.WAITING).exists():
            at_once(lambda number: webhook_deliver(webhook.pk, clock=clock))
            clock.on(minutes=1)  # one that takes long to answer rests for a while
        sent = [one.headers["Yardmaster-Delivery"] for one in receiver.got]
    assert sorted(sent) == sorted(str(pk) for pk in Delivery.objects.values_list("pk", flat=True))
    assert set(Delivery.objects.values_list("tries", flat=True)) == {1}
