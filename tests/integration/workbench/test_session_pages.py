"""The page Workbench and the page of a session, in each state and for each reader."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.workbench import services
from apps.workbench.models import Home, WorkbenchSession
from tests.integration.workbench.conftest import changed, failed, jupyter_of, over, ready, unused

HTMX = {"HTTP_HX_REQUEST": "true"}
WORKBENCH = "/workbench/"


def page(client, session, query="", **more) -> str:
    answer = client.get(reverse("session_page", args=[session.pk]) + query, **more)
    assert answer.status_code == 200
    return answer.content.decode()


def post(client, session, change, **data):
    return client.post(reverse(f"session_{change}_form", args=[session.pk]), data, format="multipart")


def test_the_page_workbench_offers_both_sessions_and_looking_starts_none(world, me):
    shown = me.get(WORKBENCH).content.decode()
    assert "Your Jupyter" in shown
    assert "TensorBoard of ada" in shown
    assert shown.count("Start</button>") == 2
    assert "No other sessions." in shown
    assert 'href="/workbench/" aria-current="page"' in shown
    assert not WorkbenchSession.objects.exists()


def test_a_start_leads_to_the_page_that_opens_it(world, me, mine):
    answer = me.post("/workbench/start/", {"kind": "jupyter", "size": "large", "idle_limit": "900"}, format="multipart")
    session = WorkbenchSession.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/sessions/{session.pk}/?open=1")
    assert (session.kind, session.size, session.idle_seconds) == ("jupyter", "large", 900)
    shown = page(me, session, "?open=1")
    assert "Waiting in the queue" in shown
    assert "This page opens the session as soon as it is ready." in shown
    assert 'hx-trigger="every 1s"' in shown
    assert "data-opens-session" not in shown
    ready(session)
    part = page(me, session, "?open=1", **HTMX)
    assert f'href="/sessions/{session.pk}/open/" data-opens-session' in part
    assert "<html" not in part
    assert "data-opens-session" not in page(me, session), "only where it was asked for"


def test_a_form_names_its_namespace_and_is_refused_where_one_may_only_look(world, ada, bob, me):
    form = {"kind": "tensorboard", "namespace": str(bob.personal_namespace.pk)}
    assert me.post("/workbench/start/", form, format="multipart")["Location"] == WORKBENCH
    Membership.objects.create(namespace=bob.personal_namespace, user=ada, role=Role.VIEWER)
    assert me.post("/workbench/start/", form, format="multipart")["Location"] == WORKBENCH
    assert not WorkbenchSession.objects.exists()
    Membership.objects.update(role=Role.MEMBER)
    me.post("/workbench/start/", form, format="multipart")
    assert WorkbenchSession.objects.get().namespace == bob.personal_namespace


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example/", "/\\evil.example"])
def test_a_refused_start_leads_back_to_the_portal_alone(me, back):
    form = {"kind": "jupyter", "size": "enormous", "back": back}
    answer = me.post("/workbench/start/", form, format="multipart")
    assert answer["Location"] == WORKBENCH
    assert "enormous" in me.get(WORKBENCH).content.decode()


def test_what_it_waits_for_is_shown_while_it_waits(me, jupyter):
    type(jupyter.job).objects.filter(pk=jupyter.job_id).update(message="Not enough CPU.", remedy="Stop a session.")
    shown = page(me, jupyter)
    assert "Not enough CPU." in shown
    assert "Stop a session." in shown
    assert "Not enough CPU." in me.get(WORKBENCH).content.decode()


def test_a_jupyter_says_what_is_kept_and_whose_it_is(me, jupyter):
    shown = page(me, ready(jupyter))
    assert "Only you" in shown
    assert "packages installed with pip" in shown
    assert "Copy link" not in shown
    assert f"/jobs/{jupyter.job_id}/logs/" in shown


def test_a_tensorboard_has_a_link_to_share_that_stays(me, board):
    address = f"http://testserver/sessions/{board.pk}/open/"
    assert address in page(me, board)
    assert address in page(me, over(board))


def test_an_idle_stop_is_announced_with_a_way_to_extend(me, jupyter):
    unused(ready(jupyter), left=timedelta(minutes=1))
    assert "if unused.</strong>" in page(me, jupyter)
    assert post(me, jupyter, "extend").status_code == 302
    assert "if unused.</strong>" not in page(me, jupyter)


def test_the_end_of_the_longest_life_is_announced_and_no_extension_is_offered(me, jupyter, settings):
    ready(jupyter, last_used_at=timezone.now())
    longest = settings.YARDMASTER_WORKBENCH["LONGEST"]
    type(jupyter.job).objects.update(started_at=timezone.now() - longest + timedelta(minutes=50))
    assert "because it has reached the maximum run time of a session.</strong>" in page(me, jupyter)
    shown = page(me, jupyter)
    assert "session-extend" not in shown
    assert "if unused" not in shown
    assert 'hx-trigger="every 60s"' in shown
    assert me.get(f"/api/v1/sessions/{jupyter.pk}/").json()["stops_anyway"] is True
    type(jupyter.job).objects.update(started_at=timezone.now())
    assert me.get(f"/api/v1/sessions/{jupyter.pk}/").json()["stops_anyway"] is False


def test_the_page_looks_often_enough_for_the_warning(me, jupyter):
    unused(ready(jupyter), left=timedelta(minutes=3))
    assert 'hx-trigger="every 10s"' in page(me, jupyter)
    unused(jupyter, left=timedelta(minutes=10))
    assert 'hx-trigger="every 60s"' in page(me, jupyter)


def test_a_stopped_session_says_why_and_is_started_from_its_page(me, board):
    over(changed(board, stopped_idle=True))
    shown = page(me, board)
    assert "was not used for 1h" in shown
    assert 'hx-get="/sessions/' not in shown, "it does not change by itself"
    answer = post(me, board, "start", size="medium", idle_limit="900")
    assert answer["Location"] == f"/sessions/{board.pk}/?open=1"
    assert (changed(board).size, changed(board).idle_seconds) == ("medium", 900)


def test_a_failed_session_says_why_and_what_helps(me, board):
    failed(board, "The image <b>cannot</b> be pulled.", "Ask an administrator.")
    shown = page(me, board)
    assert "The image &lt;b&gt;cannot&lt;/b&gt; be pulled." in shown
    assert "Ask an administrator." in shown
    assert "session-start" in shown


def test_a_restart_says_that_it_comes_again_with_its_size(me, jupyter):
    ready(jupyter)
    assert post(me, jupyter, "restart", size="large").status_code == 302
    shown = page(me, jupyter)
    assert "Restarting" in shown
    assert "size large" in shown
    assert 'hx-trigger="every 2s"' in shown
    over(jupyter)
    assert "Restarting" in page(me, jupyter), "until the sweep has started it"
    card = me.get(WORKBENCH).content.decode()
    assert "It starts again when it has stopped." in card
    assert card.count("Start</button>") == 1, "that of the TensorBoard"


def test_a_refusal_is_said_on_the_page(me, jupyter):
    over(jupyter)
    answer = post(me, jupyter, "extend")
    assert b"does not run" in answer.content


def test_an_administrator_takes_over_and_the_owner_sees_who_it_is(me, jupyter, admin, signed_in):
    ready(jupyter)
    boss = signed_in(admin)
    shown = page(boss, jupyter)
    assert "session-take-over" in shown
    assert "session-open" not in shown
    assert post(boss, jupyter, "take-over").status_code == 302
    shown = page(boss, jupyter)
    assert "You have taken over this session" in shown
    assert "session-open" in shown
    words = "An administrator, <bdi>admin</bdi>, has taken over this session."
    assert words in page(me, jupyter)
    assert words in me.get(WORKBENCH).content.decode()
    post(me, jupyter, "stop")
    assert words not in page(me, over(jupyter)), "it ends with the session"


def test_another_users_jupyter_is_not_there_and_a_viewer_only_opens_tensorboards(me, jupyter, board, bob, signed_in):
    other = signed_in(bob)
    for session in (jupyter, board):
        assert other.get(f"/sessions/{session.pk}/").status_code == 404
        assert other.get(f"/sessions/{session.pk}/open/").status_code == 404
    Membership.objects.create(namespace=board.namespace, user=bob, role=Role.VIEWER)
    assert other.get(f"/sessions/{jupyter.pk}/").status_code == 404
    shown = page(other, ready(board))
    assert "session-open" in shown
    assert "session-stop" not in shown
    assert "Restart with another size" not in shown
    assert "you can only view" in page(other, over(board))
    assert post(other, board, "start").status_code == 200
    assert changed(board).starts == 1


def test_other_sessions_are_listed_with_what_can_be_done(world, me, ada, bob, admin, signed_in):
    job = world.launch(ada)
    one = services.tensorboard_start(user=ada, namespace=job.namespace, job_ids=[job.pk])[0]
    shown = me.get(WORKBENCH).content.decode()
    assert f"/sessions/{one.pk}/?open=1" in shown
    assert "TensorBoard of digits" in shown
    jupyter_of(bob)
    boss = signed_in(admin)
    assert "Jupyter of bob" in boss.get(f"{WORKBENCH}?namespace=bob").content.decode()
    assert "Jupyter of bob" not in me.get(WORKBENCH).content.decode()


def test_pages_of_jobs_lead_to_their_tensorboard(world, me, ada):
    job, other = world.launch(ada), world.launch(ada)
    assert 'id="job-tensorboard"' in me.get(f"/jobs/{job.pk}/").content.decode()
    assert "Compare in TensorBoard" in me.get("/jobs/").content.decode()
    assert "Compare in TensorBoard" in me.get(f"/jobs/compare/?job={job.pk}&job={other.pk}").content.decode()
    form = {"kind": "tensorboard", "job": [str(job.pk), str(other.pk)], "action": "tensorboard", "back": "/jobs/"}
    me.post("/workbench/start/", form, format="multipart")
    session = WorkbenchSession.objects.get()
    assert sorted(session.job_ids) == sorted([str(job.pk), str(other.pk)])
    shown = page(me, session)
    assert f"/jobs/{job.pk}/" in shown
    assert f"/jobs/{other.pk}/" in shown
    assert 'id="job-tensorboard"' not in me.get(f"/jobs/{session.job_id}/").content.decode(), "it shows nothing itself"
    type(job).objects.filter(pk=job.pk).update(phase="FAILED")
    assert 'id="job-tensorboard"' not in me.get(f"/jobs/{job.pk}/").content.decode(), "it has ended without outputs"


def test_pages_of_code_lead_to_the_version_in_ones_jupyter_in_its_namespace(world, me, ada, mine):
    version = world.code_version(ada)
    code, path = version.parent, f"/code/{version.parent.pk}/"
    shown = me.get(path).content.decode()
    form = shown.partition('action="/workbench/start/"')[2].partition("</form>")[0]
    assert "Open in Jupyter" in form
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    assert sent["namespace"] == str(code.namespace_id)
    answer = me.post("/workbench/start/", sent, format="multipart")
    session = WorkbenchSession.objects.get()
    query = urlencode({"kind": "code", "version": str(version.pk), "name": f"{code.name}@{version.number}"})
    opened = urlencode({"next": f"/w/{session.pk}/yardmaster/open?{query}"})
    assert answer["Location"] == f"/sessions/{session.pk}/?open=1&{opened}"
    ready(session)
    assert f"/sessions/{session.pk}/open/?{opened}".replace("&", "&amp;") in page(me, session, f"?open=1&{opened}")


def test_the_page_workbench_takes_few_statements(world, me, ada, django_assert_max_num_queries):
    for _ in range(6):
        job = world.launch(ada)
        services.tensorboard_start(user=ada, namespace=job.namespace, job_ids=[job.pk])
    me.get(WORKBENCH)
    with django_assert_max_num_queries(14):
        me.get(WORKBENCH)


def test_the_page_workbench_asks_no_more_for_many_jupyters(
    world, ada, bob, admin, signed_in, django_assert_max_num_queries
):
    """An administrator sees those of all members, and those that were left behind."""
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    for n in range(8):
        user = User.objects.create_user(f"user{n}", f"user{n}@example.org", "correct horse battery")
        seat = Membership.objects.create(namespace=team, user=user, role=Role.MEMBER)
        Home.objects.create(namespace=team, engine="staged", owner=user, size=1, is_measured=True)
        jupyter_of(user, team)
        if n % 2:
            seat.delete()
    boss = signed_in(admin)
    address = f"{WORKBENCH}?namespace=vision"
    assert boss.get(address).content.decode().count("Jupyter of user") >= 12
    with django_assert_max_num_queries(24):
        boss.get(address)


def test_a_start_for_many_jobs_asks_for_them_at_once(world, me, ada, django_assert_max_num_queries):
    form = {"kind": "tensorboard", "job": [str(world.launch(ada).pk) for _ in range(8)]}
    me.post("/workbench/start/", form, format="multipart")
    with django_assert_max_num_queries(14):
        me.post("/workbench/start/", form, format="multipart")
    assert len(WorkbenchSession.objects.get().job_ids) == 8
