"""Passwords are guessed from many addresses, at many accounts, and around every count. The owner still gets in."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import httpx2
import pytest

from tests.hostile.conftest import http, in_browser
from tests.real.portal import EXACT, LIGHT
from tests.real.scene import Scene, scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

LIMITS = {"ADDRESS": 20, "PAIR": 4, "ACCOUNT": 12}
MAILS = 3
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def guessed() -> Iterator[Scene]:
    """A portal that takes the address from its proxy, which here is the test."""
    told = {f"YARDMASTER_SIGN_IN_PER_{name}": str(limit) for name, limit in LIMITS.items()}
    told |= {"YARDMASTER_RESET_MAILS": str(MAILS), "YARDMASTER_BEHIND_PROXY": "1"}
    with scene(LIGHT, {**EXACT, **told}) as one:
        yield one


@pytest.fixture
def stranger(guessed: Scene) -> Iterator[httpx2.Client]:
    with http(guessed.portal.url) as client:
        yield client


def guess(client: httpx2.Client, name: str, address: str, password: str = "wrong wrong") -> httpx2.Response:
    body = {"username": name, "password": password, "name": "x"}
    return client.post("/api/v1/auth/token/", json=body, headers={"X-Forwarded-For": address})


def on_page(client: httpx2.Client, url: str, name: str, address: str, password: str = "wrong wrong") -> httpx2.Response:
    client.get("/accounts/login/", headers={"X-Forwarded-For": address})
    form = {"login": name, "password": password, "csrfmiddlewaretoken": client.cookies["yardmaster_csrf"]}
    return client.post("/accounts/login/", data=form, headers={"Referer": url, "X-Forwarded-For": address})


def let_through(answers: list[httpx2.Response]) -> int:
    """How many guesses were looked at."""
    assert {one.status_code for one in answers} <= {401, 429}
    return sum(one.status_code == 401 for one in answers)


@pytest.mark.long
def test_a_flood_of_other_names_erases_no_count(guessed: Scene, stranger: httpx2.Client):
    guessed.portal.token_of("flooded")
    assert let_through([guess(stranger, "flooded", "10.0.0.1") for _ in range(8)]) == LIMITS["PAIR"]
    with http(guessed.portal.url) as other:
        for number in range(400):  # a cache of 300 entries would have forgotten all
            other.get("/accounts/login/", headers={"X-Forwarded-For": f"10.1.{number // 250}.{number % 250}"})
            other.post("/accounts/password/reset/", headers={"X-Forwarded-For": f"10.1.{number // 250}.{number % 250}"})
        for number in range(40):
            guess(other, f"nobody{number}", f"10.2.0.{number}")
    assert let_through([guess(stranger, "flooded", "10.0.0.1") for _ in range(4)]) == 0


def test_one_address_tries_one_password_on_no_more_than_so_many_names(stranger: httpx2.Client):
    answers = [guess(stranger, f"name{number}", "10.3.0.1") for number in range(LIMITS["ADDRESS"] + 10)]
    assert LIMITS["ADDRESS"] <= let_through(answers) <= LIMITS["ADDRESS"] + 2  # a minute may begin in between
    refused = [one for one in answers if one.status_code == 429]
    assert all(int(one.headers["Retry-After"]) > 0 for one in refused)


def test_a_network_of_64_bits_is_one_address(stranger: httpx2.Client):
    answers = [guess(stranger, f"six{number}", f"2001:db8:1:2::{number:x}") for number in range(LIMITS["ADDRESS"] + 10)]
    assert let_through(answers) <= LIMITS["ADDRESS"] + 2


def test_a_whole_network_gets_no_more_guesses_at_one_account_than_that_accounts(
    guessed: Scene, stranger: httpx2.Client
):
    guessed.portal.token_of("wanted")
    answers = [guess(stranger, "wanted", f"10.4.0.{number}") for number in range(2 * LIMITS["ACCOUNT"])]
    assert let_through(answers) == LIMITS["ACCOUNT"]
    assert guess(stranger, "wanted", "10.4.1.1", PASSWORD).status_code == 429  # nor is the right one told apart


def test_the_owner_gets_in_while_the_account_is_under_attack(guessed: Scene, stranger: httpx2.Client):
    guessed.portal.token_of("owner")
    assert guess(stranger, "owner", "10.5.0.1", PASSWORD).status_code == 201  # from home, some day before
    with http(guessed.portal.url) as browser:
        assert on_page(browser, guessed.portal.url, "owner", "10.5.0.2", PASSWORD).status_code == 302
        device = browser.cookies["yardmaster_device"]
    let_through([guess(stranger, "owner", f"10.6.0.{number}") for number in range(2 * LIMITS["ACCOUNT"])])
    assert guess(stranger, "owner", "10.6.1.1", PASSWORD).status_code == 429
    assert guess(stranger, "owner", "10.5.0.1", PASSWORD).status_code == 201
    with http(guessed.portal.url) as laptop:
        laptop.cookies.set("yardmaster_device", device)
        assert on_page(laptop, guessed.portal.url, "owner", "10.7.0.1", PASSWORD).status_code == 302
    with http(guessed.portal.url) as thief:  # the cookie of one device is no way around the count either
        thief.cookies.set("yardmaster_device", device)
        pages = [on_page(thief, guessed.portal.url, "owner", f"10.8.0.{number}") for number in range(6)]
    assert "Too many" in pages[-1].text


@pytest.mark.long
def test_no_number_of_other_sign_ins_makes_a_stranger_known_for_an_account(guessed: Scene, stranger: httpx2.Client):
    """A tenant who owns a large network has signed in from a part of it that is larger than any table of counters."""
    guessed.portal.token_of("renter")
    guessed.portal.token_of("quiet")
    noted = guessed.portal.script(
        "import django; django.setup()\nfrom django.test import RequestFactory\nfrom django.conf import settings\n"
        "settings.YARDMASTER_SIGN_IN_LIMITS = dict.fromkeys(settings.YARDMASTER_SIGN_IN_LIMITS, 60_000)\n"
        "from apps.accounts.attempts import attempt_begin\nfrom apps.accounts.models import User\n"
        "user = User.objects.get(username='renter')\n"
        "for n in range(1_000):\n"
        "    request = RequestFactory().post('/', headers={'X-Forwarded-For': f'2001:db8:{n:x}::1'})\n"
        "    attempt_begin(request, 'renter').succeeded(user)\n"
        "print(user.known_networks.count())"
    )
    assert int(noted.splitlines()[-1]) == 20
    answers = [guess(stranger, "quiet", f"2001:db9:{number:x}::1") for number in range(200)]
    assert let_through(answers) == LIMITS["ACCOUNT"]


def test_the_device_of_one_account_is_none_of_another(guessed: Scene, stranger: httpx2.Client):
    guessed.portal.token_of("mallory")
    guessed.portal.token_of("victim")
    with http(guessed.portal.url) as browser:
        on_page(browser, guessed.portal.url, "mallory", "10.9.0.1", PASSWORD)
        device = browser.cookies["yardmaster_device"]
    stranger.cookies.set("yardmaster_device", device)
    answers = [guess(stranger, "victim", f"10.9.1.{number}") for number in range(2 * LIMITS["ACCOUNT"])]
    assert let_through(answers) == LIMITS["ACCOUNT"]


def test_names_that_nobody_has_are_answered_and_counted_alike(guessed: Scene, stranger: httpx2.Client):
    guessed.portal.token_of("real")
    found = []
    for name, net in (("real", 1), ("unreal", 2)):
        answers = [guess(stranger, name, f"10.10.{net}.1") for _ in range(LIMITS["PAIR"] + 2)]
        found.append([(one.status_code, one.json()["detail"]) for one in answers])
    assert found[0] == found[1]


def test_name_and_address_of_one_account_share_its_count(guessed: Scene, stranger: httpx2.Client):
    guessed.portal.token_of("both")
    guessed.portal.script(
        "import django; django.setup()\nfrom apps.accounts.models import User\n"
        "User.objects.filter(username='both').update(email='both@example.org')"
    )
    names = ["both", "BOTH", " both", "both@example.org", "Both@Example.org"] * 2
    assert let_through([guess(stranger, name, "10.11.0.1") for name in names]) == LIMITS["PAIR"]


def test_a_name_that_is_the_address_of_another_is_no_way_around_that_accounts_count(
    guessed: Scene, stranger: httpx2.Client
):
    """Such an account may be older than the rule that refuses its name."""
    guessed.portal.token_of("bob")
    guessed.portal.script(
        "import django; django.setup()\nfrom apps.accounts.models import User\n"
        "User.objects.filter(username='bob').update(email='bob@example.org')\n"
        f"User.objects.create_user('bob@example.org', password='{PASSWORD} of mallory')"
    )
    devices = []
    for number in range(3):
        with http(guessed.portal.url) as mallory:  # each sign-in of her own gives a cookie of a known device
            own = f"{PASSWORD} of mallory"
            assert on_page(mallory, guessed.portal.url, "bob@example.org", f"10.14.0.{number}", own).status_code == 302
            devices.append(mallory.cookies["yardmaster_device"])
    answers = []
    for number, device in enumerate(devices):
        with http(guessed.portal.url) as mallory:
            mallory.cookies.set("yardmaster_device", device)
            answers += [guess(mallory, "bob@example.org", f"10.14.{number + 1}.{n}") for n in range(LIMITS["PAIR"])]
    # Her own sign-ins, each of which counts as two on a page, were guesses at the other account as well.
    assert 0 < let_through(answers) <= LIMITS["ACCOUNT"] - 2 * len(devices)


def test_no_name_is_made_that_is_or_may_become_the_address_of_another(guessed: Scene):
    guessed.portal.token_of("carol")
    with http(guessed.portal.url, guessed.token) as admin:
        carol = next(one for one in admin.get("/api/v1/users/").json()["results"] if one["username"] == "carol")
        assert admin.patch(f"/api/v1/users/{carol['id']}/", json={"email": "carol@example.org"}).status_code == 200
        own = {"username": "dora@example.org", "email": "Dora@example.org"}
        assert admin.post("/api/v1/users/", json=own).status_code == 201
        for wish, field, code in [
            ({"username": "carol@example.org"}, "username", "looks_like_address"),
            ({"username": "CAROL＠example.org", "email": "eve@example.org"}, "username", "looks_like_address"),
            ({"username": "later@example.org"}, "username", "looks_like_address"),
            ({"username": "carol@example.org", "email": "carol@example.org"}, "email", "unique"),
        ]:
            refused = admin.post("/api/v1/users/", json=wish)
            assert refused.status_code == 400, wish
            assert (refused.json()["errors"][0]["field"], refused.json()["errors"][0]["code"]) == (field, code), wish
        taken = admin.patch(f"/api/v1/users/{carol['id']}/", json={"email": "dora@example.org"})
        assert (taken.status_code, taken.json()["errors"][0]["field"]) == (400, "email")


def test_links_that_are_tried_out_are_counted(stranger: httpx2.Client):
    stranger.get("/accounts/login/", headers={"X-Forwarded-For": "10.12.0.1"})
    form = {"csrfmiddlewaretoken": stranger.cookies["yardmaster_csrf"]}
    told = {"X-Forwarded-For": "10.12.0.1", "Referer": str(stranger.base_url)}
    codes = [
        stranger.post(f"/sign-in/guess{n}/", data=form, headers=told).status_code for n in range(LIMITS["ADDRESS"])
    ]
    assert codes[0] == 410
    assert codes[-1] == 429


def test_changes_of_an_address_are_counted_per_user(guessed: Scene):
    guessed.portal.token_of("asking")
    with in_browser(guessed.portal.url, "asking") as asking:
        answers = [
            asking.post(
                "/account/address/", data={"email": f"a{n}@example.org"}, headers={"X-Forwarded-For": f"10.15.0.{n}"}
            )
            for n in range(LIMITS["ACCOUNT"] + 4)
        ]
    codes = [one.status_code for one in answers]
    assert codes == [200] * LIMITS["ACCOUNT"] + [429] * 4


def test_mails_that_reset_a_password_are_counted_per_account(guessed: Scene, stranger: httpx2.Client):
    guessed.portal.token_of("mailed")
    guessed.portal.script(
        "import django; django.setup()\nfrom apps.accounts.models import User\n"
        "User.objects.filter(username='mailed').update(email='mailed@example.org')"
    )
    stranger.get("/accounts/login/")
    for net, emails in enumerate([["mailed@example.org", "Mailed@Example.org"], ["unknown@example.org"] * 2]):
        codes = []
        for number in range(MAILS + 4):
            told = {"X-Forwarded-For": f"10.16.{net}.{number}", "Referer": str(stranger.base_url)}
            form = {"email": emails[number % 2], "csrfmiddlewaretoken": stranger.cookies["yardmaster_csrf"]}
            codes.append(stranger.post("/accounts/password/reset/", data=form, headers=told).status_code)
        assert codes == [302] * MAILS + [429] * 4


def test_guesses_are_counted_and_signing_in_works_while_the_message_server_is_away(
    guessed: Scene, stranger: httpx2.Client
):
    guessed.portal.token_of("late")
    guessed.portal.kill("valkey", signal.SIGKILL)
    try:
        assert guess(stranger, "late", "10.13.0.1", PASSWORD).status_code == 201
        answers = [guess(stranger, "late", "10.13.0.2") for _ in range(LIMITS["PAIR"] + 4)]
        assert let_through(answers) == LIMITS["PAIR"]
    finally:
        guessed.portal.start("valkey")
    until(lambda: guess(stranger, "late", "10.13.0.3", PASSWORD).status_code == 201, what="signing in")
