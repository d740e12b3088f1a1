"""Every change is in the audit with what was before it, and what acted where no user did.

In every other test of the folder `tests/integration`, an event of a change without it fails the test (`conftest.py`).
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from celery import Celery
from django.test import Client

from apps.accounts import addresses
from apps.accounts.models import User
from apps.accounts.openid import groups_apply
from apps.accounts.services import profile_change, user_change
from apps.administration.audit_actions import ACTIONS
from apps.audit.changes import OF_SECRETS, UPDATES, changes, lacks_before
from apps.audit.models import AuditEvent
from apps.audit.services import record
from apps.datasets.models import Dataset
from apps.datasets.selectors import DATASETS
from apps.jobs.state import holds
from apps.notifications.choosing import exception_choose, notices_choose
from apps.uploads.versioned.services import collection_change
from portal.openid_settings import OpenIdProvider
from yardmaster.outgoing.notices import Choice, Way

APPS = Path(__file__).resolve().parents[3] / "apps"
VERBS = {
    "change", "set", "rename", "move", "stage", "resize", "defaults", "secret", "chat", "off", "answer_for",
    "take_over", "pause", "resume", "schedule_begin", "schedule_end", "rotate", "reset",
}  # fmt: skip
REMOVALS = {"second_factor.reset"}
"""What it says of the factors that it takes away is what was before."""


def last(action: str) -> AuditEvent:
    return AuditEvent.objects.filter(action=action).latest("at")


def test_every_action_that_changes_values_is_known_as_one():
    changing = {action for action in ACTIONS if action.partition(".")[2] in VERBS}
    assert changing - UPDATES - OF_SECRETS - REMOVALS == set()
    assert set(ACTIONS) >= UPDATES | OF_SECRETS


def test_no_call_records_a_change_without_what_was_before():
    """A call that names its facts: it must name one of before. One that hands on a mapping is seen when it is made."""
    bare = []
    for file in APPS.rglob("*.py"):
        for call in (one for one in ast.walk(ast.parse(file.read_text())) if isinstance(one, ast.Call)):
            if getattr(call.func, "id", "") != "record" or not isinstance(call.args[1], ast.Constant):
                continue
            names = {one.arg for one in call.keywords}
            is_said = None in names or any(str(one).endswith("before") for one in names)
            if call.args[1].value in UPDATES and not is_said:
                bare.append(f"{file.relative_to(APPS)}:{call.lineno} {call.args[1].value}")
    assert bare == []


def test_what_lacks_is_seen():
    assert lacks_before("user.change", {"email": "a"})
    assert lacks_before("user.change", {"email_before": "a"})
    assert not lacks_before("user.change", {"email": "b", "email_before": "a"})
    assert not lacks_before("quota.set", {"before": {}, "after": {}})
    assert not lacks_before("user.create", {"username": "a"})
    assert changes({"a": 1, "b": 2}, {"a": 1, "b": 3}) == {"b": 3, "b_before": 2}


@pytest.mark.django_db
def test_an_event_of_a_change_without_it_fails_a_test(ada):
    with pytest.raises(AssertionError):
        record(ada, "user.change", f"user:{ada.pk}", email="new@example.org")


@pytest.mark.django_db
def test_a_profile(ada):
    profile_change(user=ada, first_name="Ada", time_zone="Europe/Berlin")
    assert last("user.change").facts == {
        "first_name": "Ada", "first_name_before": "", "time_zone": "Europe/Berlin", "time_zone_before": "",
    }  # fmt: skip
    profile_change(user=ada, first_name="Ada")
    assert AuditEvent.objects.filter(action="user.change").count() == 1, "nothing changed"


@pytest.mark.django_db
def test_an_address_that_is_asked_for_confirmed_and_discarded(ada, settings, mailoutbox):
    settings.YARDMASTER_SENDS_MAIL = True
    addresses.address_ask(user=ada, email="new@example.org")
    assert last("address.ask").facts["email_before"] == "ada@example.org"
    link = next(word for word in mailoutbox[-1].body.split() if "/accounts/address/" in word)
    Client().post(link[link.index("/accounts/address/") :])
    assert last("address.confirm").facts == {
        "name": "ada", "email": "new@example.org", "email_before": "ada@example.org",
    }  # fmt: skip
    User.objects.filter(pk=ada.pk).update(pending_email="third@example.org")
    addresses.address_cancel(user=ada)
    assert last("address.cancel").facts == {"waiting": "", "waiting_before": "third@example.org"}


@pytest.mark.django_db
def test_a_dataset_is_renamed_and_described(ada):
    made = Dataset.objects.create(namespace=ada.personal_namespace, name="digits", description="old")
    collection_change(DATASETS, made, actor=ada, name="numbers", description="new")
    assert last("dataset.change").facts == {
        "name": "numbers", "name_before": "digits", "description": "new", "description_before": "old",
    }  # fmt: skip
    collection_change(DATASETS, made, actor=ada, name="numbers")
    assert AuditEvent.objects.filter(action="dataset.change").count() == 1


@pytest.mark.django_db
def test_a_hold_has_the_reason_that_it_replaces(admin, ada):
    for reason in ("first", "second"):
        holds.hold(ada.personal_namespace, reason=reason, actor=admin)
    facts = last("hold.set").facts
    assert (facts["reason"], facts["reason_before"]) == ("second", "first")


@pytest.mark.django_db
def test_choices_of_notifications(ada):
    notices_choose(ada, {"job.stopped": Choice(Way.MAIL)}, flood=5)
    facts = last("notification.change").facts
    assert facts["after"] == {"flood": 5, "job.stopped": "mail now"}
    assert facts["before"]["job.stopped"] == "none"
    exception_choose(ada, "job.stopped", ada.personal_namespace, Choice(Way.NONE))
    assert last("notification.change").facts == {
        "before": {"job.stopped in ada": None}, "after": {"job.stopped in ada": "none"},
    }  # fmt: skip
    exception_choose(ada, "job.stopped", ada.personal_namespace, Choice(Way.NONE))
    assert AuditEvent.objects.filter(action="notification.change").count() == 2


@pytest.mark.django_db
def test_rights_by_groups_of_a_provider_name_the_provider(admin, ada):
    company = OpenIdProvider("company", "https://x", "yardmaster", "s", "Company", administrators=("admins",))
    groups_apply(ada, company, frozenset({"admins"}))
    event = last("user.change")
    assert (event.actor_name, event.facts) == (
        "", {"is_staff": True, "is_staff_before": False, "source": "oidc:company"}
    )  # fmt: skip
    groups_apply(ada, company, frozenset())
    assert last("user.change").facts["source"] == "oidc:company"


@pytest.mark.django_db
def test_what_the_portal_does_by_itself_names_the_task_or_the_command(monkeypatch, admin, ada, signed_in):
    app = Celery("test", set_as_current=False)

    @app.task(name="yardmaster.of_this_test")
    def by_itself() -> None:
        record(None, "webhook.off", "webhook:1", active=False, active_before=True)

    @app.task(name="yardmaster.of_this_test_too")
    def for_a_user() -> None:
        record(ada, "job.stop", "job:1")

    import celery_worker.app  # noqa: F401  # notes which task runs

    by_itself.apply()
    assert last("webhook.off").facts["acted"] == "task of_this_test"
    for_a_user.apply()
    assert "acted" not in last("job.stop").facts
    page = signed_in(admin).get("/audit/", {"action": "webhook.off"}).content.decode()
    assert "the portal (task of this test)" in page
    monkeypatch.setattr("sys.argv", ["manage.py", "first_admin"])
    record(None, "user.create", "user:1")
    assert last("user.create").facts["acted"] == "command first_admin"


@pytest.mark.django_db
def test_a_request_of_no_user_names_neither(client, ada, monkeypatch):
    monkeypatch.setattr("sys.argv", ["manage.py", "runserver"])
    client.post("/accounts/login/", {"login": "ada", "password": "wrong"})
    assert "acted" not in last("session.fail").facts


@pytest.mark.django_db
def test_a_change_that_names_nothing_is_no_event(admin, ada):
    user_change(actor=admin, user=ada)
    assert not AuditEvent.objects.filter(action="user.change").exists()
