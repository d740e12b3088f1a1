"""A program is signed in by a code that its user confirms: the API, the page, and what both refuse."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts import device
from apps.accounts.models import DeviceSignIn, PersonalToken
from apps.accounts.services import tokens_revoke_all, user_change
from apps.audit.models import AuditEvent

pytestmark = pytest.mark.django_db
ASK, POLL, PAGE = "/api/v1/auth/device/", "/api/v1/auth/device/token/", "/device/"
ID = "yardmaster-client"


def ask(**more: str) -> dict:
    body = {"name": "yardmaster on laptop", "client_id": ID, **more}
    answer = APIClient(REMOTE_ADDR="192.0.2.7", HTTP_USER_AGENT="yardmaster-client/0.1.0").post(ASK, body)
    assert answer.status_code == 200, answer.content
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.json()


def poll(asked: dict, **more: str):
    return APIClient().post(POLL, {"device_code": asked["device_code"], "client_id": ID, **more})


def code_of(answer) -> str:
    body = answer.json()
    assert answer.status_code == 400
    assert body["error"] == body["code"]
    return body["code"]


def decide(user, asked: dict, answer: str) -> Client:
    client = Client()
    client.force_login(user)
    done = client.post(PAGE, {"code": asked["user_code"], "answer": answer})
    assert done.status_code == 200
    return client


def test_what_is_asked_has_the_standards_shape_and_is_stored_hashed(settings):
    settings.PUBLIC_URL = "https://portal.example.org"
    asked = ask()
    assert set(asked) == {"device_code", "user_code", "verification_uri", "verification_uri_complete", "expires_in",
                          "interval"}  # fmt: skip
    assert asked["verification_uri_complete"] == f"https://portal.example.org/device/?code={asked['user_code']}"
    assert (asked["expires_in"], asked["interval"]) == (600, 5)
    stored = str(DeviceSignIn.objects.values())
    assert asked["device_code"] not in stored
    assert asked["user_code"] not in stored
    assert asked["user_code"].replace("-", "") not in stored


def test_the_page_shows_who_asks_and_a_confirmed_program_collects_a_token_once(ada):
    asked = ask()
    assert code_of(poll(asked)) == "authorization_pending"
    client = Client()
    client.force_login(ada)
    page = client.get(PAGE, {"code": asked["user_code"]}).content.decode()
    for words in (
        "yardmaster on laptop",
        "192.0.2.7",
        "yardmaster-client/0.1.0",
        asked["user_code"],
        "full access",
        "ada",
    ):
        assert words in page
    assert code_of(poll(asked)) == "slow_down", "looking at the page confirms nothing"
    decide(ada, asked, "confirm")
    given = poll(asked, grant_type="urn:ietf:params:oauth:grant-type:device_code").json()
    assert given["token_type"] == "Bearer"
    token = PersonalToken.objects.get(user=ada)
    assert (token.name, token.scopes) == ("yardmaster on laptop", [])
    assert abs(given["expires_in"] - 90 * 86_400) < 60
    me = APIClient(HTTP_AUTHORIZATION=f"Bearer {given['access_token']}").get("/api/v1/me/")
    assert me.json()["username"] == "ada"
    assert "yardmaster on laptop" in client.get("/account/tokens/").content.decode()
    assert code_of(poll(asked)) == "invalid_grant"
    assert PersonalToken.objects.count() == 1


def test_scopes_are_shown_and_kept(ada):
    asked = ask(scope="jobs read")
    decide(ada, asked, "confirm")
    assert poll(asked).json()["scope"] == "read jobs"
    assert PersonalToken.objects.get().scopes == ["read", "jobs"]


@pytest.mark.parametrize(
    "body", [{}, {"name": ""}, {"name": "x" * 101}, {"name": "a\u202eb"}, {"name": "x", "scope": "root"},
             {"name": "x", "secret": "y"}, {"name": "a\x00b"}]
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(body: dict):
    answer = APIClient().post(ASK, body)
    assert answer.status_code == 400
    assert answer.json()["errors"]
    assert not DeviceSignIn.objects.exists()


def test_a_refused_program_gets_nothing(ada):
    asked = ask()
    decide(ada, asked, "refuse")
    assert code_of(poll(asked)) == "access_denied"
    client = Client()
    client.force_login(ada)
    assert client.post(PAGE, {"code": asked["user_code"], "answer": "confirm"}).status_code == 404, "decided is decided"
    assert not PersonalToken.objects.exists()


def test_a_code_lives_for_ten_minutes_also_when_it_is_confirmed(ada):
    asked, late = ask(), ask()
    decide(ada, late, "confirm")
    with time_machine.travel(timezone.now() + timedelta(minutes=10, seconds=1)):
        assert code_of(poll(asked)) == code_of(poll(late)) == "expired_token"
        client = Client()
        client.force_login(ada)
        assert client.get(PAGE, {"code": asked["user_code"]}).status_code == 404
    device.device_clean(timezone.now() + timedelta(hours=1, minutes=11))
    assert not DeviceSignIn.objects.exists()


def test_a_program_that_polls_too_fast_has_to_wait_longer():
    asked = ask()
    assert poll(asked).json()["interval"] == 5
    assert [poll(asked).json()["interval"] for _ in range(2)] == [10, 15]
    with time_machine.travel(timezone.now() + timedelta(seconds=15)):
        assert code_of(poll(asked)) == "authorization_pending"


def test_a_token_is_for_the_program_that_asked(ada):
    asked = ask()
    decide(ada, asked, "confirm")
    assert code_of(poll(asked, client_id="another")) == "invalid_grant"
    assert code_of(poll({"device_code": asked["user_code"]})) == "invalid_grant"
    assert poll(asked).status_code == 200


def test_locking_out_and_revoking_all_end_what_is_confirmed(ada, admin):
    for end in (
        lambda: tokens_revoke_all(user=ada, actor=ada),
        lambda: user_change(user=ada, actor=admin, is_active=False),
    ):
        asked = ask()
        decide(ada, asked, "confirm")
        end()
        assert code_of(poll(asked)) == "invalid_grant"


def test_the_page_needs_a_user_and_the_forms_own_secret(ada):
    asked = ask()
    answer = Client().get(PAGE, {"code": asked["user_code"]})
    assert answer.headers["Location"].startswith("/accounts/login/?next=/device/%3Fcode%3D")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    assert strict.post(PAGE, {"code": asked["user_code"], "answer": "confirm"}).status_code == 403
    assert code_of(poll(asked)) == "authorization_pending"
    assert strict.get(PAGE).headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("change", [str.lower, lambda code: code.replace("-", ""), lambda code: f" {code} "])
def test_a_code_may_be_typed_in_other_ways(ada, change):
    asked = ask()
    client = Client()
    client.force_login(ada)
    assert "Sign in this program?" in client.post(PAGE, {"code": change(asked["user_code"])}).content.decode()


def test_codes_are_tried_a_few_times_alone(ada, bob):
    client = Client()
    client.force_login(ada)
    tried = [client.post(PAGE, {"code": f"WRNG-{number:04}"}).status_code for number in range(11)]
    assert tried == [404] * 10 + [429]
    asked = ask()
    assert client.get(PAGE, {"code": asked["user_code"]}).status_code == 429, "a right one is not told apart"
    decide(bob, asked, "confirm")


def test_right_codes_cost_nothing(ada):
    client = Client()
    client.force_login(ada)
    asked = ask()
    assert {client.get(PAGE, {"code": asked["user_code"]}).status_code for _ in range(15)} == {200}


def test_asking_is_limited_by_address(settings):
    settings.YARDMASTER_SIGN_IN_LIMITS = {**settings.YARDMASTER_SIGN_IN_LIMITS, "ADDRESS": 3}
    codes = [APIClient(REMOTE_ADDR="192.0.2.9").post(ASK, {"name": "x"}).status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]
    assert APIClient(REMOTE_ADDR="192.0.2.10").post(ASK, {"name": "x"}).status_code == 200


def test_both_decisions_are_audited_with_what_asked(ada):
    for answer in ("confirm", "refuse"):
        decide(ada, ask(), answer)
    events = AuditEvent.objects.filter(action__startswith="device.").order_by("pk")
    assert [one.action for one in events] == ["device.confirm", "device.refuse"]
    assert {one.facts["asked_from"] for one in events} == {"192.0.2.7"}
    assert {one.facts["name"] for one in events} == {"yardmaster on laptop"}


def test_what_a_program_calls_itself_is_never_markup(ada):
    asked = ask(name="<script>alert(1)</script>")
    client = Client()
    client.force_login(ada)
    page = client.get(PAGE, {"code": asked["user_code"]}).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_page_without_a_code_asks_for_it(ada):
    client = Client()
    client.force_login(ada)
    page = client.get(PAGE).content.decode()
    assert 'name="code"' in page
    assert "someone sent you" in page
