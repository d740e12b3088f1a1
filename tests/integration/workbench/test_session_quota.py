"""How many sessions a namespace may have at once: its quota, whoever starts them."""

from __future__ import annotations

import pytest

from apps.administration.usage import usage_of
from apps.errors import QuotaExceeded
from apps.namespaces.models import Quota
from apps.namespaces.selectors import quota_of
from apps.workbench import services
from tests.integration.workbench.conftest import jupyter_of


def test_one_more_than_the_quota_is_refused_with_limit_value_and_remedy(jupyter, ada, mine):
    quota_of(mine)
    Quota.objects.filter(pk=mine.pk).update(sessions=1)
    assert usage_of(mine).used["sessions"] == 1
    with pytest.raises(QuotaExceeded) as refused:
        services.tensorboard_start(user=ada, namespace=mine)
    assert "allows 1 sessions at once, and it has 1" in refused.value.detail
    assert refused.value.errors[0].field == "sessions"
    assert "administrator" in refused.value.remedy


def test_the_session_that_is_there_can_be_started_again_and_more_after_the_quota_is_raised(jupyter, ada, mine):
    quota_of(mine)
    Quota.objects.filter(pk=mine.pk).update(sessions=1)
    assert jupyter_of(ada).pk == jupyter.pk
    Quota.objects.filter(pk=mine.pk).update(sessions=2)
    assert services.tensorboard_start(user=ada, namespace=mine)
