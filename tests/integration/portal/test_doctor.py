"""`manage.py doctor`: what is wrong is said with its remedy, and nothing that was not tried is called well."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from apps.namespaces.places import places_keep
from tests.integration.jobs.conftest import stores
from tests.integration.namespaces.placed import PlacedEngine, placed_world
from yardmaster.engines.base import Examined
from yardmaster.errors import Unavailable

__all__ = ["placed_world", "stores"]


def doctor() -> tuple[str, str]:
    """What it printed, and its last word where something is wrong."""
    out = io.StringIO()
    try:
        call_command("doctor", stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


@pytest.fixture
def tries(monkeypatch, placed_world):
    """An engine that finds this when it is asked in the namespace's place."""
    asked, found = [], [Examined(True, "Processes are bounded.")]

    def examine(self, namespace_id):
        asked.append(namespace_id)
        return found

    monkeypatch.setattr(PlacedEngine, "examine", examine, raising=False)
    return asked, found


def test_what_is_well_is_said_and_tried_in_a_place_that_is_there(tries, ada):
    asked, _ = tries
    places_keep(ada.personal_namespace.pk)
    said, wrong = doctor()
    assert "well   placed: Processes are bounded." in said
    assert asked == [ada.personal_namespace.pk]
    assert wrong == ""


def test_what_is_wrong_is_said_with_its_remedy_and_counted(tries, ada):
    _, found = tries
    found[:] = [Examined(False, "Nothing stopped it.", "Set podPidsLimit.")]
    places_keep(ada.personal_namespace.pk)
    said, wrong = doctor()
    assert "WRONG  placed: Nothing stopped it.\n       Set podPidsLimit.\n" in said
    assert wrong == "1 thing is not as it should be."


def test_without_a_place_nothing_is_called_well_that_was_not_tried(tries):
    asked, _ = tries
    said, wrong = doctor()
    assert "nothing can be tried there" in said
    assert (asked, wrong) == ([], "1 thing is not as it should be.")


def test_an_engine_that_does_not_answer_and_settings_that_contradict_are_findings(placed_world, monkeypatch, settings):
    def away(self):
        raise Unavailable("The cluster did not answer.", remedy="Wait.")

    monkeypatch.setattr(PlacedEngine, "capacity", away)
    settings.YARDMASTER_DEFAULT_ENGINE = "no such engine"
    said, wrong = doctor()
    assert "WRONG  placed: The cluster did not answer.\n       Wait." in said
    assert "WRONG  settings: YARDMASTER_DEFAULT_ENGINE='no such engine'" in said
    assert wrong == "2 things are not as it should be."
