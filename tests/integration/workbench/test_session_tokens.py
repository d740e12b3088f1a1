"""The token that a Jupyter has from its owner: one at a time, none that outlives it, none against its owner's will; and
its job, which no other member drives or reads."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.accounts.models import PersonalToken
from apps.accounts.services import tokens_revoke_all
from apps.hosting import services as hosting
from apps.jobs.models import Job
from apps.jobs.pages.bulk import jobs_delete, jobs_stop
from apps.jobs.state.task_auth import token_of
from apps.namespaces.models import Membership, Role
from apps.workbench import credentials, services
from apps.workbench.models import WorkbenchSession
from apps.workbench.worker import sessions_sweep
from tests.integration.workbench.conftest import changed, over, ready

JOBS = "/api/v1/jobs/"


@pytest.fixture
def other(bob, jupyter, signed_in):
    """Bob, another member."""
    Membership.objects.create(namespace=jupyter.namespace, user=bob, role=Role.MEMBER)
    return signed_in(bob)


def ordered(client, session):
    """The token that the task gets with its order; None: none."""
    task = {"HTTP_AUTHORIZATION": f"Bearer {token_of(session.job_id, 1)}"}
    answer = client.get("/api/v1/task/order/", {"role": "worker", "index": 0}, **task)
    assert answer.status_code == 200, answer.content
    return next((one["value"] for one in answer.json()["secrets"] if one["env"] == "YARDMASTER_TOKEN"), None)


def test_each_order_ends_the_token_of_the_one_before(client, ada, jupyter):
    first, second = ordered(client, ready(jupyter)), ordered(client, jupyter)
    assert first != second
    assert PersonalToken.objects.filter(user=ada).count() == 1
    assert [client.get(JOBS, HTTP_AUTHORIZATION=f"Bearer {one}").status_code for one in (first, second)] == [401, 200]


def test_a_token_made_from_a_row_that_was_read_before_another_order_leaves_none_behind(jupyter):
    ready(jupyter)
    stale = WorkbenchSession.objects.get(pk=jupyter.pk)
    for row in (jupyter, stale, jupyter):
        assert credentials._token(row, row.job)
    assert PersonalToken.objects.count() == 1
    services.session_stop(user=jupyter.owner, session=stale)
    assert not PersonalToken.objects.exists(), "the row that was stopped knew none of them"


def test_an_order_after_the_stop_or_the_end_gives_none(client, me, jupyter):
    assert ordered(client, ready(jupyter))
    me.post(f"/api/v1/sessions/{jupyter.pk}/stop/")
    assert ordered(client, jupyter) is None
    over(jupyter)
    sessions_sweep(timezone.now())
    assert ordered(client, jupyter) is None
    assert not PersonalToken.objects.exists()


def test_a_task_that_asks_before_its_start_is_written_down_asks_again(client, ada, jupyter, monkeypatch):
    launched, answers = hosting._launched, []

    def ask_between(*given):
        job = launched(*given)
        Job.objects.filter(pk=job.pk).update(phase="RUNNING")
        task = {"HTTP_AUTHORIZATION": f"Bearer {token_of(job.pk, 1)}"}
        answers.append(client.get("/api/v1/task/order/", {"role": "worker", "index": 0}, **task))
        return job

    over(jupyter)
    monkeypatch.setattr(hosting, "_launched", ask_between)
    session, _ = services.session_start(user=ada, session=changed(jupyter))
    assert (answers[0].status_code, answers[0].json()["code"]) == (503, "unavailable")
    assert ordered(client, session)
    WorkbenchSession.objects.update(job=None)
    Job.objects.update(wanted="STOP")
    assert ordered(client, session) is None, "one that is not to run any more has none to wait for"


def test_revoked_tokens_do_not_come_back_until_the_next_start(client, ada, jupyter):
    assert ordered(client, ready(jupyter))
    tokens_revoke_all(user=ada, actor=ada)
    assert ordered(client, jupyter) is None
    over(jupyter)
    services.session_start(user=ada, session=changed(jupyter))
    assert ordered(client, ready(changed(jupyter)))


def test_another_member_does_not_retry_stop_delete_or_read_the_job_of_a_jupyter(me, other, bob, jupyter):
    ready(jupyter)
    address = f"{JOBS}{jupyter.job_id}/"
    for path in ("", "logs/", "events/", "outputs/"):
        assert other.get(address + path).status_code == 403, path
        assert me.get(address + path).status_code in (200, 404), path
    assert other.get(f"/jobs/{jupyter.job_id}/logs/").status_code == 403
    assert other.post(f"{address}stop/").status_code == 403
    assert jobs_stop(bob, [jupyter.job]).done == ()
    over(jupyter)
    assert other.post(f"{address}retry/").status_code == 403
    assert other.delete(address).status_code == 403
    assert jobs_delete(bob, [changed(jupyter).job]).done == ()
    assert Job.objects.get(pk=jupyter.job_id).wanted == "RUN"
    rows = other.get(f"{JOBS}?namespace=ada&strategy=service").json()["results"]
    assert [one["id"] for one in rows] == [str(jupyter.job_id)], "it may hold quota of the namespace"


def test_no_one_retries_the_job_of_a_session(me, admin, signed_in, jupyter, board):
    for session in (jupyter, board):
        over(session)
        for client in (me, signed_in(admin)):
            answer = client.post(f"{JOBS}{session.job_id}/retry/", {}, format="json")
            assert (answer.status_code, answer.json()["code"]) == (409, "is_service")
        assert Job.objects.get(pk=session.job_id).attempt == 1


def test_the_page_of_a_sessions_job_offers_no_retry_and_no_file_to_launch(me, board):
    board = over(ready(board), "FAILED")
    page = me.get(f"/jobs/{board.job_id}/").content.decode()
    for absent in ("job-retry", "job.yaml", "job-edit"):
        assert absent not in page
    assert "job-delete" in page


def test_its_owner_and_administrators_stop_the_job(me, admin, signed_in, jupyter):
    ready(jupyter)
    assert signed_in(admin).post(f"{JOBS}{jupyter.job_id}/stop/").status_code == 200
    over(jupyter)
    assert me.delete(f"{JOBS}{jupyter.job_id}/").status_code == 204
