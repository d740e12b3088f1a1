"""Sessions over the API: started once, resized, extended, limited, stopped when idle, closed to strangers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import PersonalToken
from apps.audit.models import AuditEvent
from apps.errors import Forbidden
from apps.jobs.models import Job
from apps.jobs.task_api.orders import order_secrets
from apps.namespaces.models import Membership, Role
from apps.workbench import services
from apps.workbench.models import WorkbenchSession
from apps.workbench.worker import sessions_sweep
from tests.integration.workbench.conftest import changed, jupyter_of, over, ready, unused

SESSIONS = "/api/v1/sessions/"


def start(client, kind="jupyter", **more):
    return client.post(SESSIONS, {"kind": kind, **more}, format="json")


def act(client, session, action, **data):
    return client.post(f"{SESSIONS}{session.pk}/{action}/", data, format="json")


def shown(client, session):
    return client.get(f"{SESSIONS}{session.pk}/").json()


@pytest.fixture
def other(bob, signed_in):
    return signed_in(bob)


@pytest.fixture
def boss(admin, signed_in):
    return signed_in(admin)


def test_a_start_makes_a_job_and_starting_what_runs_returns_it(world, me, settings):
    answer = start(me, idle_limit=7200)
    assert answer.status_code == 201, answer.json()
    found = answer.json()
    assert (found["state"], found["size"], found["idle_limit"]) == ("queued", "medium", 7200)
    assert found["url"] == f"/sessions/{found['id']}/open/"
    job = Job.objects.get(pk=found["job"])
    assert (job.strategy, job.spec["program"], job.name) == ("service", "jupyter", "Jupyter of ada")
    assert job.spec["roles"]["worker"]["memory"] == 2 << 30
    assert job.spec["options"]["portal"] == settings.PUBLIC_URL
    again = start(me, size="large")
    assert (again.status_code, again.json()["id"], again.json()["size"]) == (200, found["id"], "medium")
    assert Job.objects.count() == 1


def test_a_jupyter_is_one_per_user_and_namespace_and_a_tensorboard_one_per_selection(world, ada, bob, me):
    Membership.objects.create(namespace=ada.personal_namespace, user=bob, role=Role.MEMBER)
    first, second = world.launch(ada), world.launch(ada)
    both = [str(first.pk), str(second.pk)]
    one = start(me, "tensorboard", jobs=both).json()
    assert one["name"] == "TensorBoard of digits and 1 more"
    assert start(me, "tensorboard", jobs=both[::-1]).json()["id"] == one["id"]
    assert start(me, "tensorboard", jobs=both[:1]).json()["id"] != one["id"]
    assert start(me, "tensorboard").json()["id"] != one["id"]
    assert jupyter_of(ada).pk != jupyter_of(bob, ada.personal_namespace).pk


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"size": "enormous"}, "size"),
        ({"idle_limit": 5}, "idle_limit"),
        ({"idle_limit": 10**12}, "idle_limit"),
        ({"idle_limit": -1}, "idle_limit"),
        ({"kind": "shell"}, "kind"),
        ({"jobs": ["01890a5d-ac96-774b-bcce-b302099a8057"]}, "jobs"),
    ],
)
def test_a_refusal_names_the_field_and_the_remedy(world, me, asked, field):
    answer = me.post(SESSIONS, {"kind": "jupyter", **asked}, format="json")
    assert answer.status_code in (400, 422)
    assert field in [one["field"] for one in answer.json()["errors"]]
    assert not Job.objects.exists()


def test_jobs_of_a_tensorboard_are_ones_to_see_and_of_one_namespace(world, ada, bob, me):
    mine, foreign = world.launch(ada), world.launch(bob)
    assert start(me, "tensorboard", jobs=[str(foreign.pk)]).status_code == 404
    assert start(me, "tensorboard", jobs=[str(mine.pk), str(foreign.pk)]).status_code == 404
    Membership.objects.create(namespace=foreign.namespace, user=ada, role=Role.MEMBER)
    answer = start(me, "tensorboard", jobs=[str(mine.pk), str(foreign.pk)])
    assert "one namespace" in answer.json()["errors"][0]["message"]


def test_a_stranger_sees_none_of_it(jupyter, board, other):
    for session in (jupyter, board):
        assert other.get(f"{SESSIONS}{session.pk}/").status_code == 404
        for action in ("stop", "restart", "extend"):
            assert act(other, session, action).status_code == 404
    assert other.get(SESSIONS).json()["results"] == []
    assert other.get(f"{SESSIONS}?namespace=ada").status_code == 404


def test_a_member_uses_the_tensorboard_and_does_not_see_anothers_jupyter(jupyter, board, bob, other):
    seat = Membership.objects.create(namespace=board.namespace, user=bob, role=Role.VIEWER)
    assert [one["id"] for one in other.get(SESSIONS).json()["results"]] == [str(board.pk)]
    assert act(other, board, "stop").status_code == 403
    assert start(other, "tensorboard", namespace="ada").status_code == 403
    Membership.objects.filter(pk=seat.pk).update(role=Role.MEMBER)
    assert act(other, jupyter, "stop").status_code == 404
    assert act(other, board, "extend").status_code == 200
    assert act(other, board, "stop").json()["state"] == "stopping"


def test_an_administrator_stops_and_takes_over_but_does_not_start_anothers_jupyter(jupyter, boss, admin, me):
    assert act(boss, jupyter, "restart").status_code == 403
    assert act(me, jupyter, "take-over").status_code == 403
    assert act(boss, jupyter, "take-over").json()["taken_over_by"] == "admin"
    assert AuditEvent.objects.filter(action="workbench.take_over").get().actor_id == admin.pk
    assert shown(me, jupyter)["taken_over_by"] == "admin"
    assert act(boss, jupyter, "stop").status_code == 200
    assert act(boss, over(jupyter), "take-over").status_code == 409
    services.jupyter_start(user=jupyter.owner, namespace=jupyter.namespace)
    assert shown(me, jupyter)["taken_over_by"] is None, "the next start is its owner's alone again"


def test_a_take_over_needs_a_token_for_administration(jupyter, admin, with_token):
    assert act(with_token(admin, "jobs"), jupyter, "take-over").status_code == 403
    assert act(with_token(admin, "jobs", "admin"), jupyter, "take-over").status_code == 200


def test_a_closed_namespace_starts_nothing_and_lets_members_look(world, ada, board, me):
    over(board)
    type(board.namespace).objects.filter(pk=board.namespace_id).update(closed_at=timezone.now())
    assert start(me, "tensorboard").status_code == 409
    assert act(me, board, "restart").status_code == 409
    assert shown(me, board)["state"] == "stopped"
    assert me.get(f"/sessions/{board.pk}/").status_code == 200


def test_a_token_that_may_only_read_starts_nothing(world, ada, with_token):
    assert start(with_token(ada, "read")).status_code == 403
    assert start(with_token(ada, "read", "jobs")).status_code == 201


def test_no_one_runs_more_sessions_than_the_setting_allows(world, ada, me, settings):
    settings.YARDMASTER_WORKBENCH = settings.YARDMASTER_WORKBENCH | {"SESSIONS": 2}
    assert start(me).status_code == 201
    board = start(me, "tensorboard").json()["id"]
    job = world.launch(ada)
    answer = start(me, "tensorboard", jobs=[str(job.pk)])
    assert answer.status_code in (409, 422, 429)
    assert "2 sessions" in answer.json()["detail"]
    assert start(me).status_code == 200, "one that runs is no new one"
    over(WorkbenchSession.objects.get(pk=board))
    assert start(me, "tensorboard", jobs=[str(job.pk)]).status_code == 201


def test_a_restart_stops_it_and_starts_it_with_its_new_size_when_the_job_has_ended(world, me, jupyter):
    ready(jupyter)
    found = act(me, jupyter, "restart", size="large").json()
    assert (found["state"], found["restarts"]) == ("stopping", True)
    assert sessions_sweep(timezone.now()) == 0, "its job has not ended"
    over(jupyter)
    assert sessions_sweep(timezone.now()) == 1
    found = shown(me, jupyter)
    assert (found["state"], found["size"], found["restarts"]) == ("queued", "large", False)
    assert found["job"] != str(jupyter.job_id)
    assert act(me, jupyter, "restart", size="enormous").status_code == 400


def test_a_stop_calls_a_restart_off_and_a_restart_starts_what_was_stopped(world, me, jupyter):
    act(me, ready(jupyter), "restart")
    assert act(me, jupyter, "stop").json()["restarts"] is False
    over(jupyter)
    sessions_sweep(timezone.now())
    assert shown(me, jupyter)["state"] == "stopped"
    assert act(me, jupyter, "restart", size="small").json()["state"] == "queued"
    assert changed(jupyter).size == "small"


def test_a_restart_of_a_user_who_may_no_longer_start_it_is_dropped(world, ada, bob, board):
    seat = Membership.objects.create(namespace=board.namespace, user=bob, role=Role.MEMBER)
    services.session_restart(user=bob, session=ready(board))
    seat.delete()
    over(board)
    assert sessions_sweep(timezone.now()) == 0
    assert changed(board).again is None


def test_an_idle_session_is_stopped_and_says_so(world, me, board):
    unused(ready(board), left=timedelta(minutes=1))
    sessions_sweep(timezone.now())
    assert shown(me, board)["stops_soon"] is True
    unused(board, left=timedelta(minutes=-1))
    assert sessions_sweep(timezone.now()) == 1
    assert shown(me, board)["state"] == "stopping"
    assert "not used for 1h" in shown(me, over(board))["message"]


def test_an_extension_keeps_it_and_sets_its_limit(world, me, board):
    unused(ready(board), left=timedelta(minutes=1))
    assert act(me, board, "extend", idle_limit=7200).json()["idle_limit"] == 7200
    assert sessions_sweep(timezone.now()) == 0
    assert shown(me, board)["stops_soon"] is False
    assert act(me, over(board), "extend").status_code == 409


def test_a_jupyter_gets_its_owners_token_which_ends_with_it(world, ada, jupyter):
    def secret() -> str:
        found = [one for _, many in order_secrets.send(sender=None, job=jupyter.job) for one in many]
        return next(one["value"] for one in found if one["env"] == "YARDMASTER_TOKEN")

    first, second = secret(), secret()
    assert first != second, "a task that starts again gets another one"
    token = PersonalToken.objects.get()
    assert (token.user, set(token.scopes)) == (ada, {"read", "jobs", "data"})
    assert token.expiry is not None
    over(jupyter)
    sessions_sweep(timezone.now())
    assert not PersonalToken.objects.exists()


def test_the_task_of_a_tensorboard_gets_no_token(world, board):
    assert [one for _, many in order_secrets.send(sender=None, job=board.job) for one in many] == []


def test_what_is_done_is_in_the_audit(world, me, jupyter):
    act(me, ready(jupyter), "stop")
    actions = set(AuditEvent.objects.filter(subject=f"workbench:{jupyter.pk}").values_list("action", flat=True))
    assert actions == {"workbench.start", "workbench.stop"}


def test_use_of_another_users_jupyter_is_refused_to_programs_too(jupyter, bob):
    from apps.workbench.access import require_use

    Membership.objects.create(namespace=jupyter.namespace, user=bob, role=Role.MANAGER)
    with pytest.raises(Forbidden, match="belongs to ada"):
        require_use(bob, jupyter)


def test_the_sizes_are_those_of_the_settings(world, me):
    assert [one["name"] for one in me.get(f"{SESSIONS}sizes/").json()] == ["small", "medium", "large"]


def test_a_list_asks_few_statements(world, ada, me, django_assert_max_num_queries):
    for _ in range(5):
        job = world.launch(ada)
        services.tensorboard_start(user=ada, namespace=job.namespace, job_ids=[job.pk])
    me.get(SESSIONS)
    with django_assert_max_num_queries(8):
        assert len(me.get(SESSIONS).json()["results"]) == 5
