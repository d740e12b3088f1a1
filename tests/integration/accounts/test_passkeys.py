"""Passkeys: what of a browser's answer is believed, and what may be taken away."""

from __future__ import annotations

import json

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from apps.accounts import passkeys
from apps.accounts.models import Browser
from apps.audit.models import AuditEvent
from apps.secrets.services import secrets_reseal
from tests.integration.accounts.soft_key import HOST, SoftKey, challenge, options_of
from tests.integration.conftest import PASSWORD

ADD, LIST, LOGIN = "/accounts/2fa/webauthn/add/", "/accounts/2fa/webauthn/", "/accounts/2fa/webauthn/login/"


@pytest.fixture(autouse=True)
def _at_a_name(settings):
    settings.PUBLIC_URL = HOST
    settings.ALLOWED_HOSTS = ["*"]


@pytest.fixture
def owner(ada) -> Client:
    """Ada's browser, in which she has just confirmed that it is she."""
    client = Client()
    client.force_login(ada)
    client.post(f"/accounts/reauthenticate/?next={LIST}", {"password": PASSWORD, "next": LIST})
    return client


def add(client: Client, key: SoftKey, name: str = "Laptop", **more: str):
    answer = key.made(options_of(client, ADD))
    return client.post(ADD, {"name": name, "credential": answer, "passwordless": "on", **more}, follow=True)


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def enter(key: SoftKey, client: Client | None = None) -> Client:
    client = client or Client()
    client.post(LOGIN, {"credential": key.used(challenge(client))})
    return client


def second_step(key: SoftKey) -> Client:
    client = Client()
    client.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    asked = options_of(client, "/accounts/2fa/authenticate/")
    client.post("/accounts/2fa/authenticate/", {"credential": key.used(asked)})
    return client


def test_a_passkey_signs_in_after_the_password_and_instead_of_it(ada, owner):
    key = SoftKey()
    assert b"Recovery codes" in add(owner, key).content
    alone = enter(key)
    assert is_in(alone)
    assert Browser.objects.get(user=ada, session_id=alone.session.session_key).way == "passkey"
    assert is_in(second_step(key))
    facts = AuditEvent.objects.get(action="second_factor.add", facts__kind="webauthn").facts
    assert facts == {"kind": "webauthn", "name": "Laptop"}
    page = owner.get(LIST).content.decode()
    assert "signs in alone" in page
    assert "last used" in page


def test_a_passkey_that_did_not_verify_its_user_is_no_password(ada, bob, owner):
    """Also where it answers the challenge of a second step, which anyone gets who knows a password of their own."""
    key = SoftKey()
    add(owner, key)
    key.verifies = False
    assert not is_in(enter(key))
    other = SoftKey(id=b"bobs")
    own = Client()
    own.force_login(bob)
    own.post(f"/accounts/reauthenticate/?next={LIST}", {"password": PASSWORD, "next": LIST})
    add(own, other)
    thief = Client()
    thief.post("/accounts/login/", {"login": "bob", "password": PASSWORD})
    asked = options_of(thief, "/accounts/2fa/authenticate/")
    thief.post(LOGIN, {"credential": key.used(asked)})
    assert not is_in(thief)
    assert is_in(second_step(key)), "after the password it need not"


def test_an_answer_to_a_page_at_another_port_is_refused(ada, owner):
    key = SoftKey()
    add(owner, key)
    key.origin = "http://localhost:8081"
    assert not is_in(enter(key))
    assert not is_in(second_step(key))
    key.origin = HOST
    assert is_in(enter(key))
    assert b"not accepted" in add(owner, SoftKey(id=b"second", origin="http://localhost:8081")).content


def test_a_challenge_is_answered_once_and_a_copy_is_refused(ada, owner):
    key = SoftKey()
    add(owner, key)
    client = Client()
    asked = challenge(client)
    answer = key.used(asked)
    broken = json.loads(answer) | {"response": json.loads(answer)["response"] | {"signature": "AAAA"}}
    client.post(LOGIN, {"credential": json.dumps(broken)})
    client.post(LOGIN, {"credential": answer})
    assert not is_in(client), "the challenge was used up by the wrong answer"
    assert is_in(enter(key))
    copy = SoftKey(counter=0, id=key.id, handle=key.handle, _secret=key._secret)
    assert not is_in(second_step(copy))
    assert AuditEvent.objects.filter(action="second_factor.fail").exists()


BROKEN = [
    "", "null", "[]", "7", '"x"', "{}", "{", '{"id": 1}', '{"id": "AA", "rawId": "AA", "response": null}',
    '{"id": "AA", "rawId": "AA", "type": "public-key", "response": {"clientDataJSON": "e30", "authenticatorData": '
    '"AAAA", "signature": "AAAA", "userHandle": null}}',
    '{"id": "AA", "rawId": "AA", "type": "public-key", "response": {"clientDataJSON": "!", "attestationObject": "o2"}}',
    "[" * 5_000, "x" * 50_000,
]  # fmt: skip


@pytest.mark.parametrize("answer", BROKEN)
def test_what_is_malformed_is_refused_without_an_error(ada, owner, answer):
    key = SoftKey()
    add(owner, key)
    client = Client()
    challenge(client)
    assert client.post(LOGIN, {"credential": answer}).status_code == 302
    assert not is_in(client)
    options_of(owner, ADD)
    assert owner.post(ADD, {"name": "x", "credential": answer}).status_code == 200
    assert owner.post("/accounts/2fa/webauthn/reauthenticate/", {"credential": answer}).status_code == 200
    entering = Client()
    entering.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    assert entering.post("/accounts/2fa/authenticate/", {"credential": answer}).status_code == 200
    assert not is_in(entering)
    assert Authenticator.objects.filter(type="webauthn").count() == 1


@pytest.mark.parametrize("place", ["attestationObject", "clientDataJSON"])
@pytest.mark.parametrize("cut", [1, 40, 100, -1])
def test_a_registration_that_is_cut_off_is_refused(ada, owner, place, cut):
    answer = json.loads(SoftKey().made(options_of(owner, ADD)))
    answer["response"][place] = answer["response"][place][:cut]
    assert owner.post(ADD, {"name": "x", "credential": json.dumps(answer)}).status_code == 200
    assert not Authenticator.objects.filter(type="webauthn").exists()


def test_the_last_one_stays_where_one_is_required(ada, owner, settings):
    settings.YARDMASTER_REQUIRE_SECOND_FACTOR = "all"
    add(owner, SoftKey())
    first = Authenticator.objects.get(type="webauthn")
    path = f"/accounts/2fa/webauthn/keys/{first.pk}/remove/"
    assert b"is your only one" in owner.get(path).content
    assert b"Add another passkey" in owner.post(path, follow=True).content
    assert Authenticator.objects.filter(pk=first.pk).exists()
    add(owner, SoftKey(id=b"another"), "Key ring")
    owner.post(path)
    assert [str(one) for one in Authenticator.objects.filter(type="webauthn")] == ["Key ring"]
    assert AuditEvent.objects.get(action="second_factor.remove").facts == {"kind": "webauthn", "name": "Laptop"}


def test_a_passkey_has_a_bounded_name_which_is_changed_on_record(ada, owner):
    add(owner, SoftKey())
    one = Authenticator.objects.get(type="webauthn")
    path = f"/accounts/2fa/webauthn/keys/{one.pk}/edit/"
    owner.post(path, {"name": "x" * 101})
    owner.post(path, {"name": "Home: laptop"})
    event = AuditEvent.objects.get(action="second_factor.rename")
    assert event.facts == {"name": "Home: laptop", "name_before": "Laptop"}
    assert secrets_reseal()[1] == [], "a passkey has no secret, whatever its name looks like"


def test_passkeys_of_others_are_not_found(bob, owner):
    add(owner, SoftKey())
    one = Authenticator.objects.get(type="webauthn")
    stranger = Client()
    stranger.force_login(bob)
    stranger.post(f"/accounts/reauthenticate/?next={LIST}", {"password": PASSWORD, "next": LIST})
    for verb in ("edit", "remove"):
        assert stranger.post(f"/accounts/2fa/webauthn/keys/{one.pk}/{verb}/", {"name": "mine"}).status_code == 404


def test_one_account_has_so_many(ada, owner, monkeypatch):
    monkeypatch.setattr(passkeys, "MOST", 1)
    add(owner, SoftKey())
    assert b"as many as are allowed" in add(owner, SoftKey(id=b"another")).content
    assert Authenticator.objects.filter(type="webauthn").count() == 1


def test_a_sensitive_change_is_confirmed_with_a_passkey(ada, owner):
    key = SoftKey()
    add(owner, key)
    later = enter(key)
    asked = later.get("/accounts/2fa/recovery-codes/generate/")
    assert asked.status_code == 302
    options = options_of(later, "/accounts/2fa/webauthn/reauthenticate/?next=/accounts/2fa/recovery-codes/generate/")
    answer = {"credential": key.used(options), "next": "/accounts/2fa/recovery-codes/generate/"}
    done = later.post("/accounts/2fa/webauthn/reauthenticate/", answer, follow=True)
    assert b"Create codes" in done.content


def test_challenges_for_signing_in_are_counted(db, client, settings):
    settings.YARDMASTER_SIGN_IN_LIMITS = {**settings.YARDMASTER_SIGN_IN_LIMITS, "ADDRESS": 2}
    statuses = [client.get(LOGIN, headers={"accept": "application/json"}).status_code for _ in range(4)]
    assert statuses[0] == 200
    assert statuses[-1] == 429


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("url", "works"),
    [
        ("http://127.0.0.1:8080", False), ("https://10.0.0.1", False), ("http://yard.example", False),
        ("https://yard.example", True), ("http://localhost:8080", True), ("https://[::1]:8080", False),
    ],
)  # fmt: skip
def test_pages_offer_passkeys_where_browsers_do(client, settings, url, works):
    settings.PUBLIC_URL = url
    assert passkeys.passkeys_work() is works
    assert (b"Use a passkey" in client.get("/accounts/login/").content) is works
