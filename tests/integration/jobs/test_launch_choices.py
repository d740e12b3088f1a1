"""Which versions the launch form offers: the newest that the user may see, and those that are chosen."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.jobs.launch import choices
from apps.jobs.launch.choices import choices_of, newest_of
from apps.namespaces.models import Namespace


def ids(found: list[choices.Choice]) -> list[str]:
    return [one.id for one in found]


def offered(world, ada: User, bob: User) -> None:
    """Old ones only where they are chosen, and nothing of others, with one statement for all stores."""
    codes = [world.code_version(ada) for _ in range(4)]
    foreign, data = world.code_version(bob), world.dataset_version(ada, {"a.csv": "1"})
    type(codes[3]).objects.filter(pk=codes[3].pk).update(parent=codes[0].parent, number=2)
    asked = {"code": [str(codes[0].pk), str(foreign.pk), "no id", ""], "dataset": (), "model": ()}
    with CaptureQueriesContext(connection) as statements:
        found = choices_of(ada, asked, most=2)
    assert len(statements) == 1
    assert ids(found["code"]) == [str(codes[number].pk) for number in (3, 2, 0)]
    assert [one.is_newest for one in found["code"]] == [True, True, False]
    assert (ids(found["dataset"]), found["model"]) == ([str(data.pk)], [])
    (one,) = found["dataset"]
    assert (one.name, one.number, one.namespace) == (data.parent.name, 1, Namespace.objects.get(owner=ada).slug)
    assert ids(choices_of(ada, asked, most=0)["code"]) == [str(codes[0].pk)]
    assert ids(choices_of(bob, {"code": ()})["code"]) == [str(foreign.pk)]


@pytest.mark.django_db
def test_the_newest_and_the_chosen_ones_are_offered(world, ada, bob):
    offered(world, ada, bob)


@pytest.mark.postgres
def test_they_are_on_postgres_as_well(postgres_world):
    offered(postgres_world, *(User.objects.create_user(name, password="correct horse") for name in ("ada", "bob")))


@pytest.mark.django_db
def test_the_newest_version_of_one_thing_is_found_where_it_may_be_seen(world, ada, bob):
    old, new = world.code_version(ada), world.code_version(ada)
    type(new).objects.filter(pk=new.pk).update(parent=old.parent, number=2)
    assert newest_of(ada, "code", str(old.parent_id)) == str(new.pk)
    assert newest_of(bob, "code", str(old.parent_id)) == newest_of(ada, "code", str(uuid.uuid4())) == ""
    assert newest_of(ada, "dataset", str(old.parent_id)) == newest_of(ada, "code", "no id") == ""
