"""What only a real database shows: two jobs that end at once, and two promotions at once."""

from __future__ import annotations

import pytest

from apps.accounts.models import User
from apps.registry.models import Model, ModelVersion, Stage
from apps.registry.stages import stage_set
from tests.integration.jobs.conftest import engine_settings, postgres_world, stores, world
from tests.integration.jobs.test_jobs_on_postgres import at_once
from tests.integration.model_versions import job_of, version_of
from tests.real.postgres import postgres_cluster, postgres_db

pytestmark = pytest.mark.postgres

__all__ = ["engine_settings", "postgres_cluster", "postgres_db", "postgres_world", "stores", "world"]


@pytest.fixture
def carl(postgres_world) -> User:
    return User.objects.create_user("carl", "carl@example.org", "correct horse battery")


def test_jobs_that_end_at_once_export_to_one_model_with_numbers_of_their_own(carl):
    jobs = [job_of(carl) for _ in range(6)]
    at_once(*(lambda job=job: version_of(job, name="digits") for job in jobs))
    model = Model.objects.get(name="digits")
    assert sorted(model.versions.values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]
    assert model.latest_number == 6


def test_of_versions_that_are_promoted_at_once_one_is_in_production(carl):
    versions = [version_of(job_of(carl), name="digits") for _ in range(4)]
    at_once(*(lambda one=one: stage_set(one, Stage.PRODUCTION, actor=carl) for one in versions))
    stages = sorted(ModelVersion.objects.values_list("stage", flat=True))
    assert stages == ["archived", "archived", "archived", "production"]
