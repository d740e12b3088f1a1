"""The way into a session: a ticket once, for a cookie that opens nothing else and ends with the sign-in."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import sign_in_link_create
from apps.audit.models import AuditEvent
from apps.workbench.addresses import origin_of
from apps.workbench.entrances import COOKIE_LASTS, entrance_of, entrance_renew, entrances_clean, ticket_exchange
from apps.workbench.models import Entrance, WorkbenchSession
from apps.workbench.proxy.application import BEGIN, ENTER, digest_of
from tests.integration.workbench.conftest import changed, over, ready

ENTRY = digest_of("what the browser is known by")


def opened(client, session, **query):
    """As a browser does that has begun to enter at the session's origin."""
    return client.get(f"/sessions/{session.pk}/open/", {"entry": ENTRY, **query})


def exchange(session: UUID, ticket: str) -> str | None:
    return ticket_exchange(session, ticket, [ENTRY])


def ticket_in(answer) -> str:
    assert answer.status_code == 302
    return parse_qs(urlsplit(answer["Location"]).query)["ticket"][0]


@pytest.fixture
def cookie(me, jupyter) -> str:
    """For Ada's Jupyter."""
    found = exchange(jupyter.pk, ticket_in(opened(me, ready(jupyter))))
    assert found
    return found


def who(session: WorkbenchSession, cookie: str) -> User | None:
    found = entrance_of(session.pk, cookie, timezone.now())
    return found.user if found else None


def test_a_jupyter_that_is_opened_after_a_one_time_link_is_in_the_audit(ada, jupyter, board, client):
    ready(jupyter)
    ready(board)
    client.post(sign_in_link_create(ada))
    for session in (board, jupyter, jupyter):
        ticket_in(opened(client, session))
    (found,) = AuditEvent.objects.filter(action="workbench.open_by_link")
    assert (found.actor_id, found.subject) == (ada.pk, f"workbench:{jupyter.pk}")


def test_a_jupyter_that_is_opened_after_a_password_needs_no_such_record(me, jupyter):
    ticket_in(opened(me, ready(jupyter)))
    assert not AuditEvent.objects.filter(action="workbench.open_by_link").exists()


def test_a_session_that_is_ready_is_opened_at_its_own_origin(me, jupyter):
    answer = opened(me, ready(jupyter))
    address = urlsplit(answer["Location"])
    assert address.netloc == urlsplit(origin_of(jupyter.pk)).netloc
    assert parse_qs(address.query)["next"] == [f"/w/{jupyter.pk}/"]
    assert answer["Referrer-Policy"] == "no-referrer"
    assert answer["Cache-Control"] == "no-store"


def test_a_browser_begins_at_the_origin_of_the_session_and_only_its_own_ticket_lets_it_in(me, jupyter):
    begins = me.get(f"/sessions/{ready(jupyter).pk}/open/", {"next": f"/w/{jupyter.pk}/lab"})
    assert begins["Location"].startswith(f"{origin_of(jupyter.pk)}{BEGIN}?next=")
    assert Entrance.objects.count() == 0
    answer = opened(me, jupyter)
    assert urlsplit(answer["Location"]).path == ENTER
    ticket = ticket_in(answer)
    assert ticket_exchange(jupyter.pk, ticket, [digest_of("another browser")]) is None
    assert ticket_exchange(jupyter.pk, ticket, []) is None
    assert ticket_exchange(jupyter.pk, ticket, [digest_of("of a script"), ENTRY])


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example/", "/w/other/", "/w/{id}/../other/", "/w/{id}", "x" * 3000]
)
def test_it_leads_nowhere_but_below_the_session(me, jupyter, wanted):
    answer = opened(me, ready(jupyter), next=wanted.replace("{id}", str(jupyter.pk)))
    assert parse_qs(urlsplit(answer["Location"]).query)["next"] == [f"/w/{jupyter.pk}/"]


def test_a_notebook_of_the_session_may_be_named(me, jupyter):
    path = f"/w/{ready(jupyter).pk}/lab/tree/digits.ipynb"
    answer = me.get(f"/sessions/{jupyter.pk}/open/", {"next": path})
    assert parse_qs(urlsplit(answer["Location"]).query)["next"] == [path]


@pytest.mark.parametrize(
    ("referer", "is_direct"),
    [
        ("http://testserver/accounts/login/", False),
        ("http://testserver/sessions/x/", True),
        ("https://chat.example.org/accounts/login/", True),
        ("", True),
    ],
)
def test_after_the_form_of_a_sign_in_the_page_opens_it(me, jupyter, referer, is_direct):
    path = f"/w/{ready(jupyter).pk}/lab"
    answer = me.get(f"/sessions/{jupyter.pk}/open/", {"next": path}, HTTP_REFERER=referer)
    address = urlsplit(answer["Location"])
    assert parse_qs(address.query)["next"] == [path]
    assert (address.path == f"/sessions/{jupyter.pk}/") is not is_direct


def test_one_that_is_not_ready_leads_to_its_page_and_makes_no_ticket(me, jupyter):
    for session in (jupyter, over(jupyter)):
        assert opened(me, session)["Location"] == f"/sessions/{session.pk}/?open=1"
    assert not Entrance.objects.exists()


def test_a_cookie_is_given_once_for_a_ticket_and_says_who_it_is(me, ada, jupyter):
    ticket = ticket_in(opened(me, ready(jupyter)))
    cookie = exchange(jupyter.pk, ticket)
    assert cookie
    assert exchange(jupyter.pk, ticket) is None
    assert who(jupyter, cookie) == ada
    assert cookie not in str(list(Entrance.objects.values())), "the database has its digest alone"


def test_a_ticket_is_good_for_thirty_seconds(me, jupyter, time_machine):
    start = timezone.now()
    time_machine.move_to(start, tick=False)
    late, soon = (ticket_in(opened(me, ready(jupyter))) for _ in range(2))
    time_machine.move_to(start + timedelta(seconds=29), tick=False)
    assert exchange(jupyter.pk, soon)
    time_machine.move_to(start + timedelta(seconds=32), tick=False)
    assert exchange(jupyter.pk, late) is None


def test_forged_tickets_and_those_of_another_session_let_no_one_in(me, jupyter, board):
    ticket = ticket_in(opened(me, ready(jupyter)))
    entrance = Entrance.objects.get()
    forged = ["", "x", entrance.pk.hex, ticket[:-1] + ("A" if ticket[-1] != "A" else "B"), ticket * 100, "\x00:\ud800:"]
    for one in forged:
        assert exchange(jupyter.pk, one) is None
    assert exchange(board.pk, ticket) is None
    assert exchange(jupyter.pk, ticket), "no attempt has used it up"


def test_a_cookie_opens_its_own_session_alone(jupyter, board, cookie):
    assert who(ready(board), cookie) is None
    assert who(jupyter, "") is None
    assert who(jupyter, cookie + "x") is None
    assert who(jupyter, "x" * 5000) is None


def test_a_sign_out_ends_it_at_once(me, jupyter, cookie):
    assert who(jupyter, cookie)
    me.logout()
    assert who(jupyter, cookie) is None


def test_so_do_a_new_password_and_a_lock(ada, jupyter, cookie):
    ada.set_password("another correct horse")
    ada.save()
    assert who(jupyter, cookie) is None
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert who(jupyter, cookie) is None


def test_a_cookie_lasts_while_it_is_used(jupyter, cookie):
    for hours in range(2, 80, 13):  # the page is open all the time
        now = timezone.now() + timedelta(hours=hours)
        found = entrance_of(jupyter.pk, cookie, now)
        assert found is not None
        entrance_renew(found, now)


def test_a_cookie_that_is_not_used_for_a_day_is_forgotten(jupyter, cookie):
    now = timezone.now()
    assert entrance_of(jupyter.pk, cookie, now + COOKIE_LASTS + timedelta(minutes=1)) is None
    entrances_clean(now)
    assert Entrance.objects.count() == 1
    entrances_clean(now + COOKIE_LASTS + timedelta(minutes=1))
    assert not Entrance.objects.exists()


def test_unused_tickets_are_forgotten_sooner(me, jupyter):
    opened(me, ready(jupyter))
    entrances_clean(timezone.now())
    assert Entrance.objects.count() == 1
    entrances_clean(timezone.now() + timedelta(minutes=2))
    assert not Entrance.objects.exists()


def test_a_token_of_the_api_opens_no_session(ada, jupyter, with_token):
    ready(jupyter)
    answer = with_token(ada).get(f"/sessions/{jupyter.pk}/open/")
    assert answer.status_code in (302, 403)
    assert "ticket" not in answer.get("Location", "")
    assert not Entrance.objects.exists()


def test_an_administrator_gets_a_ticket_after_taking_over_alone(jupyter, admin, signed_in):
    boss = signed_in(admin)
    assert opened(boss, ready(jupyter)).status_code == 403
    boss.post(f"/sessions/{jupyter.pk}/take-over/")
    cookie = exchange(jupyter.pk, ticket_in(opened(boss, changed(jupyter))))
    assert cookie
    assert who(jupyter, cookie) == admin


def test_an_unknown_session_is_not_there(me):
    assert me.get(f"/sessions/{UUID(int=5)}/open/").status_code == 404
