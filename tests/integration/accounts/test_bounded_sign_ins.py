"""What right passwords cost and leave behind has a bound."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.attempts import CountAttempts
from apps.accounts.hashing import WAITING, Slots
from apps.accounts.models import Browser, PersonalToken
from apps.accounts.services import token_create
from apps.api.allowances import take
from apps.errors import Conflict, TooMany
from tests.integration.conftest import PASSWORD

pytestmark = pytest.mark.django_db
LOGIN = {"username": "ada", "password": PASSWORD, "name": "cli"}
SIGN_IN = "/api/v1/auth/token/"


@pytest.fixture
def few(settings):
    settings.YARDMASTER_SIGN_IN_LIMITS = {**settings.YARDMASTER_SIGN_IN_LIMITS, "SUCCESSES": 5}


@pytest.mark.usefixtures("few")
def test_right_passwords_are_counted_per_account_on_pages_and_over_the_api(ada, bob):
    now = timezone.now().replace(minute=1, second=0)
    with time_machine.travel(now, tick=False):
        codes = [APIClient(REMOTE_ADDR=f"192.0.2.{n}").post(SIGN_IN, LOGIN).status_code for n in range(3)]
        pages = [Client().post("/accounts/login/", {"login": "ada", "password": PASSWORD}) for _ in range(3)]
        assert codes == [201] * 3
        assert [one.status_code for one in pages] == [302, 302, 200]
        assert "Too many" in pages[-1].content.decode()
        for password in (PASSWORD, "wrong wrong"):
            answer = APIClient().post(SIGN_IN, {**LOGIN, "password": password})
            assert (answer.status_code, answer.json()["code"]) == (429, "throttled")
        assert APIClient().post(SIGN_IN, {**LOGIN, "username": "bob"}).status_code == 201
    assert PersonalToken.objects.filter(user=ada).count() == 3
    with time_machine.travel(now + timedelta(minutes=10), tick=False):
        assert APIClient().post(SIGN_IN, LOGIN).status_code == 201


def test_a_user_has_so_many_tokens_and_expired_ones_make_way(ada, settings):
    settings.YARDMASTER_TOKENS_PER_USER = 3
    for _ in range(3):
        token_create(user=ada, name="t", scopes=[], expires_in=timedelta(hours=1))
    with pytest.raises(Conflict) as refused:
        token_create(user=ada, name="t", scopes=[], expires_in=None)
    assert refused.value.code == "too_many_tokens"
    with time_machine.travel(timezone.now() + timedelta(hours=2)):
        token_create(user=ada, name="t", scopes=[], expires_in=None)
    assert PersonalToken.objects.filter(user=ada).count() == 1


def test_of_too_many_sessions_the_one_used_longest_ago_ends(ada, bob, settings):
    settings.YARDMASTER_SESSIONS_PER_USER = 2
    other = Client()
    other.force_login(bob)
    browsers = [Client() for _ in range(4)]
    for number, browser in enumerate(browsers):
        with time_machine.travel(timezone.now() + timedelta(minutes=number), tick=False):
            browser.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    assert [one.get("/account/").status_code for one in browsers] == [302, 302, 200, 200]
    assert other.get("/account/").status_code == 200
    assert Browser.objects.filter(user=ada).count() == 2
    assert Session.objects.count() == Browser.objects.count()


class Full:
    def one(self):
        raise TooMany("Too many passwords are being checked.", "too_many_at_once", wait=1)


def test_an_attempt_that_finds_no_place_is_no_guess(ada, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("apps.accounts.models.slots", Full)
        codes = {APIClient().post(SIGN_IN, LOGIN).json()["code"] for _ in range(30)}
        pages = [Client().post("/accounts/login/", {"login": "ada", "password": PASSWORD}) for _ in range(10)]
        change = Client()
        change.force_login(ada)
        asked = change.post("/account/address/", {"email": "new@example.org", "password": PASSWORD})
    assert codes == {"too_many_at_once"}
    assert {one.status_code for one in (*pages, asked)} == {429}
    assert APIClient().post(SIGN_IN, LOGIN).status_code == 201


def test_so_many_have_a_place_a_few_wait_and_the_next_is_refused():
    slots, held, done = Slots(1, patience=60), threading.Event(), threading.Event()

    def work() -> None:
        with slots.one(), slots.one():  # who has a place needs no second one
            held.set()
            done.wait(60)

    threads = [threading.Thread(target=work) for _ in range(1 + WAITING)]
    for thread in threads:
        thread.start()
    try:
        assert held.wait(60)
        while slots._here._value:  # until the others wait
            threading.Event().wait(0.01)
        with pytest.raises(TooMany), slots.one():
            pass
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    with slots.one():
        pass


def test_who_waits_too_long_is_refused():
    slots = Slots(1, patience=0.01)
    held, done = threading.Event(), threading.Event()

    def work() -> None:
        with slots.one():
            held.set()
            done.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert held.wait(60)
        with pytest.raises(TooMany), slots.one():
            pass
    finally:
        done.set()
        thread.join(60)


def test_a_request_of_which_no_count_is_kept_asks_no_server(monkeypatch):
    def asked() -> None:
        raise AssertionError("the message server was asked")

    monkeypatch.setattr("apps.api.allowances._script", asked)
    middleware = CountAttempts(lambda request: HttpResponse())
    assert middleware.process_view(RequestFactory().post("/jobs/launch/")) is None
    assert take([]).over is None
