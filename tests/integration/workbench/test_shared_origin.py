"""Where sessions share one origin, no Jupyter runs: what its user shows there could act in the sessions of others."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.errors import Conflict
from apps.workbench import services
from apps.workbench.access import require_use
from apps.workbench.models import WorkbenchSession
from apps.workbench.proxy.origins import origins
from apps.workbench.worker import sessions_sweep
from tests.integration.workbench.conftest import changed, jupyter_of, over, ready

SESSIONS = "/api/v1/sessions/"


@pytest.fixture
def shared(settings):
    settings.YARDMASTER_WORKBENCH_ORIGINS = origins("http://10.0.0.5:8081", "http://10.0.0.5:8080")
    return settings


def test_a_start_is_refused_with_the_remedy_and_leaves_nothing(world, me, shared):
    answer = me.post(SESSIONS, {"kind": "jupyter"}, format="json")
    assert answer.status_code == 409
    said = answer.json()
    assert said["code"] == "shared_origin"
    assert "http://10.0.0.5:8081" in said["detail"]
    assert "YARDMASTER_WORKBENCH_URL" in said["remedy"]
    assert not WorkbenchSession.objects.exists()
    page = me.post("/workbench/start/", {"kind": "jupyter"}, format="multipart", follow=True)
    assert b"needs an origin of its own" in page.content
    assert b"YARDMASTER_WORKBENCH_SHARED_ORIGIN=1" in page.content


def test_pages_offer_no_start_and_no_way_in_and_say_why(world, ada, me, jupyter, shared):
    ready(jupyter)
    starts = b'name="kind" value="jupyter"'
    for page in ("/workbench/", f"/sessions/{jupyter.pk}/"):
        content = me.get(page).content
        assert b"needs an origin of its own" in content
        assert b"?open=1" not in content
        assert b'id="session-open"' not in content
    over(jupyter)
    assert starts not in me.get("/workbench/").content
    assert b'id="session-start"' not in me.get(f"/sessions/{jupyter.pk}/").content


def test_a_tensorboard_starts_there(world, ada, shared):
    assert services.tensorboard_start(user=ada, namespace=ada.personal_namespace)[1]


def test_one_that_ran_before_is_opened_by_no_one_and_not_started_again(world, ada, jupyter, shared):
    ready(jupyter)
    with pytest.raises(Conflict, match="origin of its own"):
        require_use(ada, jupyter)
    for start in (services.session_start, services.session_restart):
        with pytest.raises(Conflict, match="origin of its own"):
            start(user=ada, session=changed(jupyter))
    services.session_stop(user=ada, session=changed(jupyter))


def test_a_restart_that_waits_says_why_it_does_not_come(world, ada, jupyter, settings):
    services.session_restart(user=ada, session=ready(jupyter))
    settings.YARDMASTER_WORKBENCH_ORIGINS = origins("http://10.0.0.5:8081", "http://10.0.0.5:8080")
    over(changed(jupyter))
    sessions_sweep(timezone.now())
    assert "origin of its own" in changed(jupyter).problem


def test_an_operator_may_allow_it(world, ada, shared):
    shared.YARDMASTER_WORKBENCH_SHARED_ORIGIN = True
    require_use(ada, jupyter_of(ada))
