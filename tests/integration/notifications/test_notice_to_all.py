"""The notice to all: set and taken back by administrators, seen by everyone in its time, hidden by whom it bores."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.notifications import broadcasts
from apps.notifications.broadcasts import BroadcastFacts, broadcast_for, broadcast_mail, broadcast_set
from apps.notifications.models import Announcement, Broadcast
from yardmaster_client.version import API, HEADER, NOTICE, VERSION

pytestmark = pytest.mark.django_db
TEXT = "Maintenance at noon: https://example.org/plan"
BANNER = 'aria-label="Notice to all"'


@pytest.fixture
def on_commit(django_capture_on_commit_callbacks):
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def tell(admin, on_commit):
    """Sets a notice, as the page does."""

    def told(text: str = TEXT, **facts) -> Broadcast:
        with on_commit():
            return broadcast_set(BroadcastFacts(text, **facts), actor=admin)

    return told


def banner_of(client, path: str = "/account/") -> str:
    answer = client.get(path)
    found = re.search(r"<aside class=\"notice-banner.*?</aside>", answer.content.decode(), re.DOTALL)
    return found[0] if found else ""


def test_others_cannot_set_it(ada, client, signed_in):
    client.force_login(ada)
    assert client.get("/admin/notice/").status_code == 403
    assert client.post("/admin/notice/", {"text": "x", "kind": "warning"}).status_code == 403
    assert client.post("/admin/notice/remove/").status_code == 403
    for verb in ("get", "put", "delete"):
        assert getattr(signed_in(ada), verb)("/api/v1/admin/notice/").status_code == 403
    assert not Broadcast.objects.exists()


def test_an_administrator_sets_it_on_the_page_and_everyone_sees_it(admin, ada, client, on_commit):
    client.force_login(ada)
    assert banner_of(client) == ""
    client.force_login(admin)
    with on_commit():
        answer = client.post("/admin/notice/", {"text": TEXT, "kind": "warning", "on_sign_in": ""})
    assert answer.status_code == 302
    client.force_login(ada)
    shown = banner_of(client)
    assert 'href="https://example.org/plan"' in shown
    assert "notice-warning" in shown
    client.logout()
    assert banner_of(client, "/accounts/login/") == ""
    facts = AuditEvent.objects.get(action="notice.set").facts
    assert facts["text"] == TEXT
    assert facts["kind"] == "warning"


def test_markup_stays_text(tell, ada, client):
    tell('<script>alert(1)</script> javascript:alert(1) "quoted" <a href="x">y</a>')
    client.force_login(ada)
    shown = banner_of(client)
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "<a " not in shown


def test_the_sign_in_page_shows_it_where_that_is_wanted(tell, client):
    tell(on_sign_in=True)
    shown = banner_of(client, "/accounts/login/")
    assert "Maintenance at noon" in shown
    assert "<form" not in shown


def test_it_has_its_time(tell, ada):
    now = timezone.now()
    tell(begins_at=now + timedelta(hours=1), ends_at=now + timedelta(hours=2))
    assert broadcast_for(ada, now) is None
    assert broadcast_for(ada, now + timedelta(minutes=61)) is not None
    assert broadcast_for(ada, now + timedelta(hours=2)) is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "x" * 501}, "text"),
        ({"text": "x", "kind": "loud"}, "kind"),
        ({"text": "x", "ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
        ({"text": "x", "begins_at": "2999-01-02T00:00:00Z", "ends_at": "2999-01-01T00:00:00Z"}, "ends_at"),
        ({"text": "x", "colour": "red"}, "colour"),
    ],
)
def test_what_makes_no_sense_is_refused(admin, client, signed_in, body, field):
    answer = signed_in(admin).put("/api/v1/admin/notice/", body, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field
    client.force_login(admin)
    if field != "colour":
        assert client.post("/admin/notice/", {"kind": "information", **body}).status_code == 400
    assert not Broadcast.objects.exists()


def test_who_hides_it_sees_it_again_once_it_changes(tell, ada, bob, client):
    tell()
    client.force_login(ada)
    address = re.search(r'action="([^"]*)"', banner_of(client))[1]
    answer = client.post(address, {"next": "/account/?x=1"})
    assert answer.headers["Location"] == "/account/?x=1"
    assert banner_of(client) == ""
    assert client.post(address, {"next": "https://evil.example/"}).headers["Location"] == "/"
    assert client.post(address, {"next": "//evil.example/"}).headers["Location"] == "/"
    client.force_login(bob)
    assert banner_of(client)
    tell("At one")
    client.force_login(ada)
    assert "At one" in banner_of(client)
    assert client.post(address, {"next": "/account/"}).status_code == 302  # the old one


def test_the_api_reads_sets_hides_and_takes_it_back(admin, ada, signed_in, on_commit):
    office, user = signed_in(admin), signed_in(ada)
    assert office.get("/api/v1/admin/notice/").status_code == 404
    with on_commit():
        made = office.put("/api/v1/admin/notice/", {"text": TEXT, "kind": "warning"}, format="json").json()
    assert made["ends_at"] is None
    rows = user.get("/api/v1/notices/").json()["results"]
    assert [(one["text"], one["kind"]) for one in rows] == [(TEXT, "warning")]
    assert user.post(f"/api/v1/notices/{made['id']}/hide/").status_code == 204
    assert user.post(f"/api/v1/notices/{made['id']}/hide/").status_code == 204
    assert user.get("/api/v1/notices/").json()["results"] == []
    with on_commit():
        assert office.delete("/api/v1/admin/notice/").status_code == 204
    assert office.get("/api/v1/notices/").json()["results"] == []
    assert user.post(f"/api/v1/notices/{made['id']}/hide/").status_code == 404
    assert AuditEvent.objects.get(action="notice.remove").facts["text_before"] == TEXT


def queries(client) -> int:
    with CaptureQueriesContext(connection) as seen:
        assert client.get("/account/").status_code == 200
    return len(seen)


def test_a_page_asks_for_it_once_at_most_and_mostly_not_at_all(tell, ada, bob, client):
    client.force_login(ada)
    client.get("/account/")
    without = queries(client)
    cache.clear()
    assert queries(client) == without + 1
    tell()
    assert queries(client) == without + 1
    assert queries(client) == without
    client.force_login(bob)
    client.get("/account/")
    assert queries(client) == without


def test_another_process_forgets_what_it_kept_within_seconds(tell, ada, monkeypatch):
    kept = {}
    monkeypatch.setattr(cache, "set", lambda key, value, timeout=None: kept.update({key: timeout}))
    broadcast_for(ada, timezone.now())
    assert kept["broadcast"] == broadcasts.KEPT <= 10


def test_clients_are_told_in_an_answer_and_strangers_are_not(tell, ada, client, signed_in):
    tell("Umlaute: ä, and\nlines")
    said = {HEADER: f"{VERSION}; api={API}"}
    answer = signed_in(ada).get("/api/v1/me/", headers=said)
    assert answer.headers[NOTICE] == "information; Umlaute%3A%20%C3%A4%2C%20and%0Alines"
    assert NOTICE not in signed_in(ada).get("/api/v1/me/").headers
    assert NOTICE not in client.get("/api/v1/me/", headers=said).headers


def test_mails_go_to_everyone_so_many_at_a_time(tell, admin, monkeypatch):
    monkeypatch.setattr(broadcasts, "MAILS_AT_ONCE", 3)
    make = User.objects.create_user
    people = [make(f"user-{n}", f"user-{n}@example.org", None) for n in range(7)]
    make("no-address", "", None)
    make("locked", "locked@example.org", None, is_active=False)
    addressed = User.objects.filter(is_active=True).exclude(email="").count()
    tell(by_mail=True)
    now = timezone.now() + timedelta(seconds=1)
    counts = []
    while (count := broadcast_mail(now)) or not counts:
        counts.append(count)
    assert max(counts) == 3
    assert sum(counts) == addressed
    assert Announcement.objects.filter(user__in=people).count() == len(people)
    assert not Announcement.objects.filter(user__username__in=["no-address", "locked"]).exists()
    assert TEXT in Announcement.objects.first().body
    assert broadcast_mail(now) == 0
    assert Broadcast.objects.get().mailed_at == now


def test_no_mail_is_written_before_its_time_or_of_one_that_is_taken_back(tell, admin):
    now = timezone.now()
    tell(by_mail=True, begins_at=now + timedelta(hours=1))
    assert broadcast_mail(now) == 0
    Broadcast.objects.all().delete()
    assert broadcast_mail(now + timedelta(hours=2)) == 0


def test_where_the_database_fails_the_page_is_there(tell, ada, client, monkeypatch):
    from django.db import OperationalError

    def fail(*_):
        raise OperationalError("gone")

    client.force_login(ada)
    monkeypatch.setattr("apps.notifications.templatetags.notice_tags.broadcast_for", fail)
    assert client.get("/account/").status_code == 200


def test_the_page_says_what_is_shown(tell, admin, client):
    client.force_login(admin)
    assert "There is no notice" in client.get("/admin/notice/").content.decode()
    tell(begins_at=timezone.now() + timedelta(hours=1))
    assert "Scheduled" in client.get("/admin/notice/").content.decode()
    tell()
    page = client.get("/admin/notice/").content.decode()
    assert ">Shown<" in page
    client.post("/admin/notice/remove/")
    assert not Broadcast.objects.exists()
