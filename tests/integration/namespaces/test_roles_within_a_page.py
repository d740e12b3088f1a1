"""A page asks for the role in a namespace by what it has read already; what it has not read, it looks up."""

from __future__ import annotations

import pytest
from django.test import RequestFactory
from django.utils import timezone

from apps.errors import Conflict, Forbidden, NotFound
from apps.namespaces import context
from apps.namespaces.context import own_namespaces, require_role_within
from apps.namespaces.models import Membership, Namespace, Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(ada) -> Namespace:
    found = Namespace.objects.create(slug="vision")
    Membership.objects.create(namespace=found, user=ada, role=Role.MEMBER)
    return found


def asked_by(user):
    request = RequestFactory().get("/")
    request.user, request.session = user, {}
    own_namespaces(request)
    return request


def test_what_the_page_has_read_is_not_asked_again(ada, team, django_assert_num_queries):
    request = asked_by(ada)
    with django_assert_num_queries(0):
        require_role_within(request, team, Role.MEMBER)
        with pytest.raises(Forbidden):
            require_role_within(request, team, Role.MANAGER)


def test_a_stranger_gets_a_404_and_a_closed_namespace_takes_nothing_new(ada, bob, team):
    with pytest.raises(NotFound):
        require_role_within(asked_by(bob), team, Role.VIEWER)
    team.closed_at = timezone.now()
    require_role_within(asked_by(ada), team, Role.VIEWER)
    with pytest.raises(Conflict):
        require_role_within(asked_by(ada), team, Role.MEMBER)


def test_of_more_namespaces_than_a_page_reads_the_rest_is_looked_up(ada, team, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(context, "shares_of", lambda user: [])
    request = asked_by(ada)
    with django_assert_num_queries(1):
        require_role_within(request, team, Role.MEMBER)
