"""What only a real database shows of schedules: several beats and workers at once launch each time once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.accounts.models import User
from apps.jobs.models import Job
from apps.namespaces.selectors import namespace_for
from apps.schedules.models import RunState, Schedule, ScheduleRun, TemplateJob
from apps.schedules.worker import schedules_sweep
from tests.integration.accounts.test_accounts_on_postgres import at_once
from tests.integration.schedules.conftest import schedule_of, template_of

pytestmark = pytest.mark.postgres
NIGHT = datetime(2027, 2, 1, 2, tzinfo=UTC)


def test_of_sweeps_at_once_each_time_is_launched_by_one(postgres_world):
    ada = User.objects.create_user("ada", "ada@example.org")
    namespace_for(ada, None)
    template = template_of(postgres_world, ada)
    for number in range(3):
        schedule_of(template, ada, name=f"n{number}", overlap="stop")
    for night in range(2):
        now = NIGHT + timedelta(days=night)
        Schedule.objects.update(next_at=now)
        at_once(lambda number, now=now: schedules_sweep(now))
        while ScheduleRun.objects.filter(state=RunState.WAITING).exists():
            now += timedelta(minutes=6)  # a lease of one that lost the race has ended
            at_once(lambda number, now=now: schedules_sweep(now))
        assert ScheduleRun.objects.filter(state=RunState.LAUNCHED).count() == 3 * (night + 1)
        assert Job.objects.count() == TemplateJob.objects.count() == 3 * (night + 1)
