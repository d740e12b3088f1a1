"""Ten people invited in one go, by page and API: all of them, or none, with each wrong address named."""

from __future__ import annotations

import re
import smtplib

import pytest
from django.core import mail

from apps.audit.models import AuditEvent
from apps.namespaces.many_invitations import MOST_AT_ONCE
from apps.namespaces.models import Invitation, Membership
from apps.namespaces.services import team_create
from apps.people.forms import addresses_in
from apps.people.mails import LONGEST, invitations_send

pytestmark = pytest.mark.django_db
PAGE, API = "/admin/invitations/", "/api/v1/invitations/many/"
TEN = [f"person{number}@example.org" for number in range(10)]


@pytest.fixture
def team(admin, ada):
    return team_create(slug="vision", title="", manager=ada, actor=admin)


def wish(emails: str, **changes) -> dict[str, object]:
    return {"emails": emails, "namespace": "vision", "role": "member", "days": 3, "uses": 1, **changes}


def test_ten_addresses_are_pasted_and_each_gets_a_link_that_works_once(admin, team, client, settings):
    client.force_login(admin)
    page = client.post(PAGE, wish("\n".join(TEN))).content.decode()
    assert "10 invitations created" in page
    links = dict(re.findall(r"(\w+@example\.org) http://\S+?(/invitation/[^<\s]+)", page))
    assert list(links) == TEN
    assert len(set(links.values())) == 10
    assert "/invitation/" not in client.get(PAGE).content.decode()
    assert AuditEvent.objects.filter(action="invitation.create", namespace_id=team.pk).count() == 10
    client.logout()
    good = {"username": "grace", "password": "correct horse 9", "again": "correct horse 9"}
    assert client.post(links[TEN[3]], good).status_code == 302
    assert Membership.objects.filter(user__username="grace", namespace=team, role="member").exists()
    assert Invitation.objects.get(email=TEN[3]).used == 1
    client.logout()
    assert client.post(links[TEN[3]], good | {"username": "eve"}).status_code == 410


def test_every_wrong_line_is_named_and_nothing_is_made(admin, team, client):
    client.force_login(admin)
    said = "ada@example.org\n\nnonsense, Bob <bob@example.org>\r\nADA@example.org"
    page = client.post(PAGE, wish(said)).content.decode()
    assert "Line 3, nonsense: This is not an e-mail address. Enter an address such as ada@example.org." in page
    assert "Line 4, ADA@example.org: ADA@example.org is given twice. Remove one of them." in page
    assert "Bob &lt;bob@example.org&gt;" in page, "what was typed stays"
    assert not Invitation.objects.exists()
    answer = client.post(PAGE, wish("ada@example.org", uses=2)).content.decode()
    assert "A link to an address has one use." in answer
    assert not Invitation.objects.exists()


def test_a_managers_team_page_takes_many_and_no_other_team(ada, bob, team, client):
    page = f"/namespaces/{team.pk}/invitations/"
    client.force_login(ada)
    assert "2 invitations created" in client.post(page, wish("a@example.org; b@example.org")).content.decode()
    client.force_login(bob)
    assert client.post(page, wish("c@example.org")).status_code == 404
    assert Invitation.objects.filter(namespace=team).count() == 2


def test_over_the_api_with_the_field_of_each_fault(admin, bob, team, signed_in):
    api = signed_in(admin)
    wrong = api.post(API, {"emails": ["a@example.org", "b"], "namespace": "vision"}, format="json")
    assert (wrong.status_code, [one["field"] for one in wrong.json()["errors"]]) == (400, ["emails.1"])
    made = api.post(API, {"emails": TEN, "namespace": "vision", "role": "viewer"}, format="json")
    assert made.status_code == 201
    assert [(one["email"], one["role"], one["uses"], one["sent"]) for one in made.json()] == [
        (address, "viewer", 1, False) for address in TEN
    ]
    assert len({one["url"] for one in made.json()}) == 10
    assert signed_in(bob).post(API, {"emails": TEN, "namespace": "vision"}, format="json").status_code == 404
    many = {"emails": [f"x{number}@example.org" for number in range(MOST_AT_ONCE + 1)]}
    assert api.post(API, many, format="json").status_code == 400


def test_as_many_as_an_hour_allows_and_then_none_of_the_rest(admin, team, signed_in):
    api = signed_in(admin)
    first = {"emails": [f"x{number}@example.org" for number in range(MOST_AT_ONCE)], "namespace": "vision"}
    assert api.post(API, first, format="json").status_code == 201
    second = {"emails": [f"y{number}@example.org" for number in range(11)], "namespace": "vision"}
    assert api.post(API, second, format="json").status_code == 429
    assert Invitation.objects.count() == MOST_AT_ONCE
    assert api.post(API, {**second, "emails": second["emails"][:10]}, format="json").status_code == 201


def test_mails_go_over_one_connection_and_one_that_is_refused_stops_no_other(
    admin, team, client, settings, monkeypatch
):
    settings.YARDMASTER_SENDS_MAIL = True
    client.force_login(admin)
    client.post(PAGE, wish("\n".join(TEN)))
    assert [one.to for one in mail.outbox] == [[address] for address in TEN]

    def refuse(subject, text, sender, to, **_):
        if to == ["b@example.org"]:
            raise smtplib.SMTPRecipientsRefused({})

    monkeypatch.setattr("apps.people.mails.send_mail", refuse)
    page = client.post(PAGE, wish("a@example.org\nb@example.org\nc@example.org")).content.decode()
    assert page.count(": sent by e-mail") == 2
    assert page.count("not sent by e-mail") == 1
    assert "b@example.org http" in page, "its link is there all the same"


def test_a_slow_mail_server_is_waited_for_no_longer_than_a_request_may_take(admin, team, settings, signed_in):
    settings.YARDMASTER_SENDS_MAIL = True
    api = signed_in(admin)
    api.post(API, {"emails": TEN, "namespace": "vision"}, format="json")
    mail.outbox.clear()
    made = [(one, "https://x/") for one in Invitation.objects.order_by("email")]
    hours = iter(float(second) for second in (0, 0, LONGEST, LONGEST + 1))
    sent = invitations_send(made, clock=lambda: next(hours))
    assert sent == {one.pk for one, _ in made[:2]}
    assert [one.to for one in mail.outbox] == [[one.email] for one, _ in made[:2]]


def test_addresses_are_read_with_their_lines():
    assert addresses_in("a@b.de, c@d.de;\n\n Eve <e@f.de>\rx") == [
        (1, "a@b.de"), (1, "c@d.de"), (3, "Eve <e@f.de>\rx")
    ]  # fmt: skip
    assert addresses_in("a\r\nA <b>\n a") == [(1, "a"), (2, "b"), (3, "a")]
