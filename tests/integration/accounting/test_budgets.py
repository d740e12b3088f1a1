"""Budgets: warned of once, held when spent, lifted when raised and when the month begins."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core import mail
from django.db import connection
from rest_framework.test import APIClient

from apps.accounting import budget_sweep
from apps.accounting.budget_sweep import budgets_sweep
from apps.accounting.budgets import budget_set, standing_of
from apps.accounting.models import BudgetWarning
from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.dispatch.models import OutboxEvent
from apps.errors import Invalid
from apps.jobs.models import Cause, Hold
from apps.namespaces.models import Namespace
from apps.notifications.budgets import budgets_note
from apps.notifications.choosing import notices_choose
from apps.notifications.happenings import happenings_note
from apps.notifications.models import Announcement
from apps.notifications.worker import announcement_send
from apps.webhooks.models import Delivery
from apps.webhooks.services import webhook_create
from yardmaster.accounting.prices import price_list
from yardmaster.outgoing.notices import Choice, Way

HOUR = timedelta(hours=1)


@pytest.fixture
def running(world, ada):
    """A job that holds three cores."""
    job = world.launch(ada)
    world.until_running(job)
    return job


def limited(ada, **limits):
    budget_set(namespace=ada.personal_namespace, limits={name: Decimal(one) for name, one in limits.items()}, actor=ada)


def test_a_spent_budget_holds_new_jobs_and_lets_the_running_continue(world, ada, running):
    limited(ada, cpu_hours=10)
    world.now += 3 * HOUR
    budgets_sweep(world.now)
    budgets_sweep(world.now)
    assert list(BudgetWarning.objects.values_list("level", flat=True)) == [80]
    assert not Hold.objects.exists()
    world.now += HOUR
    budgets_sweep(world.now)
    budgets_sweep(world.now)
    assert sorted(BudgetWarning.objects.values_list("level", flat=True)) == [80, 100]
    assert Hold.objects.get().cause == Cause.BUDGET
    waiting = world.launch(ada)
    world.settle()
    assert world.again(waiting).reason == "BudgetSpent"
    assert world.again(running).phase == "RUNNING"
    assert AuditEvent.objects.filter(action="budget.warn").count() == 2


def test_a_raised_budget_lifts_the_hold_at_once(world, ada, running, monkeypatch):
    world.now += 9 * HOUR
    monkeypatch.setattr("apps.accounting.budgets.timezone.now", world.clock)
    limited(ada, cpu_hours=10)
    assert Hold.objects.count() == 1
    waiting = world.launch(ada)
    world.settle()
    assert world.again(waiting).phase == "QUEUED"
    limited(ada, cpu_hours=1000)
    assert not Hold.objects.exists()
    world.passes(60)
    assert world.again(waiting).phase == "RUNNING"
    event = AuditEvent.objects.filter(action="budget.set").latest("pk")
    assert (event.facts["budget_before"]["cpu_hours"], event.facts["budget"]["cpu_hours"]) == ("10", "1000")


def test_a_raised_budget_warns_again_as_it_is_used_up(world, ada, running, monkeypatch):
    monkeypatch.setattr("apps.accounting.budgets.timezone.now", world.clock)
    world.now += 9 * HOUR
    limited(ada, cpu_hours=20)
    assert warned() == [80, 100]
    limited(ada, cpu_hours=31)  # 27 are used: the first level is still reached
    assert warned() == [80, 100]
    world.now += 2 * HOUR
    budgets_sweep(world.now)
    assert warned() == [80, 100, 100]


def warned() -> list[int]:
    return [one.facts["level"] for one in AuditEvent.objects.filter(action="budget.warn").order_by("pk")]


def test_what_counts_is_the_budget_as_it_is_when_the_namespace_is_locked(world, ada, running, monkeypatch):
    """It is raised between a sweep's look at all namespaces and what it does about this one."""
    world.now += 9 * HOUR
    limited(ada, cpu_hours=1000)
    plenty = budget_sweep.standings

    def spent(limits, now):
        monkeypatch.setattr(budget_sweep, "standings", plenty)
        return plenty({pk: {name: Decimal(1) for name in one} for pk, one in limits.items()}, now)

    monkeypatch.setattr(budget_sweep, "standings", spent)
    budgets_sweep(world.now)
    assert not Hold.objects.exists()
    assert warned() == []


def test_the_next_month_lifts_the_hold_and_warns_again(world, ada, running):
    limited(ada, cpu_hours=10)
    world.now += 9 * HOUR
    budgets_sweep(world.now)
    world.engine.succeed(running)
    world.until_quiet()
    world.now = world.now.replace(month=2, day=1, hour=0, minute=1)
    budgets_sweep(world.now)
    assert not Hold.objects.exists()
    assert BudgetWarning.objects.filter(month="2027-01-01").count() == 2


def test_an_administrators_hold_is_none_of_the_budgets(world, ada, running):
    from apps.jobs.state import holds

    holds.hold(ada.personal_namespace, reason="talk to us", actor=ada)
    limited(ada, cpu_hours=10)
    budgets_sweep(world.now)
    assert Hold.objects.get().cause == Cause.ADMINISTRATOR


def test_the_default_budget_bounds_those_without_their_own(world, ada, running, settings):
    settings.YARDMASTER_DEFAULT_BUDGET = {**settings.YARDMASTER_DEFAULT_BUDGET, "memory_gib_hours": Decimal(1)}
    world.now += 9 * HOUR
    budgets_sweep(world.now)
    assert Hold.objects.get().namespace == ada.personal_namespace
    budget_set(namespace=ada.personal_namespace, limits={}, actor=ada)
    assert not Hold.objects.exists()
    assert standing_of(ada.personal_namespace, world.now).lines == ()


def test_money_bounds_only_where_there_are_prices(world, ada, running, settings):
    limited(ada, money=1)
    world.now += 9 * HOUR
    budgets_sweep(world.now)
    assert not Hold.objects.exists()
    settings.YARDMASTER_PRICES = price_list({"currency": "EUR", "prices": [{"from": "2026-01-01", "cpu": "0.10"}]})
    budgets_sweep(world.now)
    assert Hold.objects.count() == 1


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity", "1e12"])
def test_what_is_no_limit_is_refused(ada, amount):
    with pytest.raises(Invalid):
        limited(ada, cpu_hours=amount)


def test_managers_get_a_mail_once(world, ada, running, settings):
    settings.YARDMASTER_SENDS_MAIL = True
    limited(ada, cpu_hours=10)
    world.now += 9 * HOUR
    budgets_sweep(world.now)
    assert OutboxEvent.objects.filter(topic="budget.reached").count() == 2
    assert budgets_note() == 2
    assert budgets_note() == 0
    assert mail.outbox == [], "a mail is sent after its event was handled, not with it"
    for one in Announcement.objects.order_by("pk"):
        announcement_send(one.pk)
    assert [one.to for one in mail.outbox] == [["ada@example.org"]] * 2
    assert "used up" in mail.outbox[1].subject


def test_a_webhook_hears_of_budgets_and_a_manager_may_want_no_mail(world, ada, running):
    webhook, _ = webhook_create(
        namespace=ada.personal_namespace, actor=ada, url="https://hooks.example.org/x", events=["budget.spent"]
    )
    notices_choose(ada, {"budget.warned": Choice(Way.NONE), "budget.spent": Choice(Way.NONE)})
    limited(ada, cpu_hours=10)
    world.now += 9 * HOUR
    budgets_sweep(world.now)
    happenings_note()
    assert budgets_note() == 2
    assert not Announcement.objects.exists()
    body = Delivery.objects.get(webhook=webhook).body
    assert (body["event"], body["budget"]["level"]) == ("budget.spent", 100)
    assert body["budget"]["url"].endswith(f"/namespaces/{ada.personal_namespace.pk}/")


def test_many_namespaces_are_judged_in_few_statements(world, ada, django_assert_max_num_queries):
    for number in range(30):
        made = Namespace.objects.create(slug=f"team-{number}")
        budget_set(namespace=made, limits={"cpu_hours": Decimal(1)}, actor=ada)
    with django_assert_max_num_queries(10):
        budgets_sweep(world.now)
    assert connection.vendor


def test_administrators_set_budgets_by_page_and_api_and_others_do_not(client, admin, ada):
    page = f"/admin/budgets/{ada.personal_namespace.pk}/"
    client.force_login(ada)
    assert client.post(page, {"cpu_hours": "5"}).status_code == 403
    client.force_login(admin)
    assert client.post(page, {"cpu_hours": "-5"}).status_code == 400
    assert client.post(page, {"cpu_hours": "5"}).status_code == 302
    assert "0.0 of 5.0" in client.get("/admin/budgets/").content.decode()
    api = APIClient()
    api.force_authenticate(ada)
    address = f"/api/v1/namespaces/{ada.personal_namespace.pk}/budget/"
    assert api.get(address).json()["limits"]["cpu_hours"] == "5.000"
    assert api.put(address, {"cpu_hours": "50"}).status_code == 403
    api.force_authenticate(admin)
    assert api.put(address, {"cpu_hours": "50", "gpu_hours": None}).json()["limits"]["cpu_hours"] == "50.000"
    wrong = api.put(address, {"cpu_hour": "100"})
    assert wrong.status_code == 400, "a bound that is written wrongly must not lift all of them"
    assert api.get(address).json()["limits"]["cpu_hours"] == "50.000"
    assert api.delete(address).json()["is_default"] is True


def test_the_namespaces_page_says_that_its_budget_is_spent(client, world, ada):
    limited(ada, cpu_hours=0)
    client.force_login(ada)
    part = f"/namespaces/{ada.personal_namespace.pk}/budget-notice/"
    assert "is used up" in client.get(part).content.decode()
    assert part in client.get("/jobs/launch/").content.decode()
    beside = f"/namespaces/{ada.personal_namespace.pk}/use/"
    assert beside in client.get(f"/namespaces/{ada.personal_namespace.pk}/").content.decode()
    assert "is used up" in client.get(beside).content.decode()
    client.force_login(User.objects.create_user("eve", "eve@example.org", "correct horse battery"))
    assert client.get(part).status_code == 404
