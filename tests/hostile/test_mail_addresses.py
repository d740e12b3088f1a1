"""A tenant who claims an address that is another person's: it is used for nothing until its reader has confirmed it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import EmailMessage
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.hostile.conftest import http
from tests.hostile.test_origins import PASSWORD, sign_in
from tests.real.portal import LIGHT
from tests.real.scene import Scene, scene
from tests.real.smtp_sink import SmtpSink, smtp_sink

pytestmark = [pytest.mark.slow, pytest.mark.linux]

LOGIN = "/api/v1/auth/token/"


@pytest.fixture(scope="module")
def sink() -> Iterator[SmtpSink]:
    with smtp_sink() as one:
        yield one


@pytest.fixture(scope="module")
def mailing(sink: SmtpSink) -> Iterator[Scene]:
    """A portal with a real mail server, where strangers may make themselves an account."""
    settings = {"YARDMASTER_EMAIL_URL": sink.url, "YARDMASTER_OPEN_SIGN_UP": "1"}
    with scene(LIGHT, settings) as one:
        yield one


def post(browser: httpx2.Client, path: str, **form: str) -> httpx2.Response:
    """Fill in a form, with the token of the page's cookie."""
    browser.get("/accounts/login/")
    token = {"csrfmiddlewaretoken": browser.cookies["yardmaster_csrf"]}
    return browser.post(path, data={**form, **token}, headers={"Referer": str(browser.base_url)}, follow_redirects=True)


def signs_in(mailing: Scene, name: str) -> bool:
    with http(mailing.portal.url) as stranger:
        login = {"username": name, "password": PASSWORD, "name": "cli"}
        return stranger.post(LOGIN, json=login).status_code == 201


def reset_mails(mailing: Scene, sink: SmtpSink, address: str) -> int:
    """How many mails that reset a password of an account here went to the address after it was asked for."""
    with http(mailing.portal.url) as stranger:
        assert post(stranger, "/accounts/password/reset/", email=address).status_code == 200
    return sum("/accounts/password/reset/key/" in mail.get_content() for mail in sink.to(address))


def link_in(mail: EmailMessage) -> str:
    found = re.search(r"http\S+/accounts/address/\S+", mail.get_content())
    assert found is not None
    return urlsplit(found[0]).path


def test_a_changed_address_is_used_only_when_its_reader_has_confirmed_it(mailing: Scene, sink: SmtpSink):
    mailing.portal.token_of("mallory")
    victims = "victim@example.org"
    with http(mailing.portal.url) as browser:
        sign_in(browser, "mallory")
        page = post(browser, "/account/address/", email=victims, password=PASSWORD).text
        assert "not confirmed" in page
        assert not signs_in(mailing, victims)
        assert reset_mails(mailing, sink, victims) == 0
        (mail,) = [one for one in sink.to(victims) if "Confirm" in one["Subject"]]
        assert "mallory" in mail.get_content()
        # A flood of mails to the victim is not to be had: one a minute.
        for _ in range(5):
            assert "An e-mail was just sent" in post(browser, "/account/address/resend/").text
        post(browser, "/account/address/", email="other@example.org", password=PASSWORD)
        assert [one for one in sink.mails if "Confirm" in one["Subject"]] == [mail]
    with http(mailing.portal.url) as reader:
        # A scanner that fetches the link confirms nothing; the reader's button does.
        for _ in range(2):
            assert reader.get(link_in(mail)).status_code == 200
        assert not signs_in(mailing, victims)
        assert post(reader, link_in(mail)).status_code == 200
        assert signs_in(mailing, victims)
        assert reset_mails(mailing, sink, victims) == 1
        assert reader.get(link_in(mail)).status_code == 410
        assert reader.get(link_in(mail)[:-5] + "xxxx/").status_code == 410


def test_an_address_given_at_sign_up_is_used_only_when_its_reader_has_confirmed_it(mailing: Scene, sink: SmtpSink):
    claimed = "boss@example.org"
    with http(mailing.portal.url) as browser:
        form = {"username": "eve", "email": claimed, "password1": PASSWORD, "password2": PASSWORD}
        assert post(browser, "/accounts/signup/", **form).status_code == 200
        assert signs_in(mailing, "eve"), "the account is there"
        assert not signs_in(mailing, claimed)
        assert reset_mails(mailing, sink, claimed) == 0
        (mail,) = [one for one in sink.to(claimed) if "Confirm" in one["Subject"]]
        # Discarded, or replaced, the link is dead.
        assert "not changed" in post(browser, "/account/address/cancel/").text
        assert post(browser, link_in(mail)).status_code == 410
    assert not signs_in(mailing, claimed)
