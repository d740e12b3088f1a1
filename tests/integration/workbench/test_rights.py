"""What pages offer of a session is what is allowed when it is asked for: to every reader, of every session."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.errors import DomainError
from apps.namespaces.models import Membership, Role
from apps.namespaces.selectors import role_of
from apps.workbench import services
from apps.workbench.access import require_change, require_files, require_start, require_use, rights_of
from apps.workbench.proxy.origins import origins
from tests.integration.workbench.conftest import jupyter_of


def _is_allowed(check, user, session):
    try:
        check(user, session)
    except DomainError:
        return False
    return True


def _take_over(user, session):
    services.session_take_over(user=user, session=session)


def _readers(namespace, ada, bob, admin):
    """The owner, a user with each role in turn and without one, and an administrator; the role of each."""
    for user in (ada, admin):
        yield user, role_of(user, namespace)
    for role in Role:
        Membership.objects.update_or_create(namespace=namespace, user=bob, defaults={"role": role})
        yield bob, role
    Membership.objects.filter(namespace=namespace, user=bob).delete()
    yield bob, None


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("is_taken_over", [False, True])
def test_pages_offer_what_is_allowed(world, ada, bob, admin, settings, is_closed, is_shared, is_taken_over):
    namespace = ada.personal_namespace
    sessions = [jupyter_of(ada), services.tensorboard_start(user=ada, namespace=namespace)[0]]
    namespace.closed_at = timezone.now() if is_closed else None
    namespace.save()
    if is_shared:
        settings.YARDMASTER_WORKBENCH_ORIGINS = origins("http://10.0.0.5:8081", "http://10.0.0.5:8080")
    offered = set()
    for user, role in _readers(namespace, ada, bob, admin):
        for session in sessions:
            session.namespace = namespace
            session.taken_over_by = admin if is_taken_over else None
            rights = rights_of(user, session, role, runs=True)
            checks = (require_use, require_change, require_start, require_files)
            allowed = [_is_allowed(check, user, session) for check in checks]
            assert [rights.use, rights.change, rights.start, rights.delete_files] == allowed, (user, role, session)
            assert rights.take_over == _is_allowed(_take_over, user, session)
            offered.add(rights)
    assert len(offered) >= 4
