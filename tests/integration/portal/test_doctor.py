"""`manage.py doctor`: what is wrong is said with its remedy, and nothing that was not tried is called well."""

from __future__ import annotations

import io

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command

from apps.workbench.proxy.origins import origins
from tests.integration.jobs.conftest import stores
from tests.integration.namespaces.placed import PlacedEngine, placed_world
from tests.real.object_stores import S3Server, minio_server
from yardmaster.engines.base import Finding, Probe
from yardmaster.errors import Unavailable

__all__ = ["minio_server", "placed_world", "stores"]


def doctor() -> tuple[str, str]:
    """What it printed, and its last word where something is wrong."""
    out = io.StringIO()
    try:
        call_command("doctor", stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


@pytest.mark.s3
def test_an_object_store_with_a_server_of_its_own_is_tried(tries, settings, minio_server: S3Server):
    settings.YARDMASTER_STORAGE = minio_server.settings()
    out, _ = doctor()
    assert "well   object store: It keeps what it is given." in out
    assert "well   object store: It takes what was signed, and refuses other bytes and lengths." in out


@pytest.fixture
def tries(monkeypatch, placed_world):
    """An engine that finds this, by probe."""
    found = {probe: Finding(True, f"The {probe} is as it should be.") for probe in Probe}

    def probe(self, which, portal_url):
        said = found[which]
        if isinstance(said, Exception):
            raise said
        return said

    monkeypatch.setattr(PlacedEngine, "probe", probe, raising=False)
    return found


def test_what_is_well_is_said_of_every_probe(tries):
    said, wrong = doctor()
    assert [line for line in said.splitlines() if "placed" in line] == [
        "well   placed: It answers.",
        *(f"well   placed: The {probe} is as it should be." for probe in ("reach", "network", "processes")),
    ]
    assert wrong == ""


def test_what_is_wrong_is_said_with_its_remedy_and_counted(tries):
    tries[Probe.PROCESSES] = Finding(False, "Nothing stopped it.", "Set podPidsLimit.")
    said, wrong = doctor()
    assert "WRONG  placed: Nothing stopped it.\n       Set podPidsLimit.\n" in said
    assert wrong == "1 thing is not as it should be."


def test_nothing_is_called_well_that_could_not_be_tried(tries):
    tries[Probe.NETWORK] = Finding(None, "It is not known.")
    tries[Probe.REACH] = Unavailable("The cluster forbids it.", remedy="Give the right.")
    said, wrong = doctor()
    assert "WRONG  placed: It is not known." in said
    tried = "The engine could not test whether tasks reach the portal: The cluster forbids it.\n       Give the right."
    assert f"WRONG  placed: {tried}" in said
    assert wrong == "2 things are not as it should be."


def test_an_engine_that_does_not_answer_and_settings_that_contradict_are_findings(placed_world, monkeypatch, settings):
    def away(self):
        raise Unavailable("The cluster did not answer.", remedy="Wait.")

    monkeypatch.setattr(PlacedEngine, "capacity", away)
    settings.YARDMASTER_DEFAULT_ENGINE = "no such engine"
    said, wrong = doctor()
    assert "WRONG  placed: The cluster did not answer.\n       Wait." in said
    assert "WRONG  settings: YARDMASTER_DEFAULT_ENGINE='no such engine'" in said
    assert wrong == "2 things are not as it should be."


@pytest.fixture
def of_volumes(monkeypatch, tries):
    """What an engine with volumes finds of them, or raises."""
    found: list[Finding | Exception] = []

    def check_volumes(self):
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    verbs = {"offers_volumes": lambda self: True, "keep_volumes": lambda *given: {}, "check_volumes": check_volumes}
    for name, verb in verbs.items():
        monkeypatch.setattr(PlacedEngine, name, verb, raising=False)
    return found


def test_volumes_without_their_class_are_said_with_the_remedy(of_volumes):
    of_volumes.append(Finding(False, "The cluster has no StorageClass fast.", "Create it."))
    said, wrong = doctor()
    assert "WRONG  placed: The cluster has no StorageClass fast.\n       Create it.\n" in said
    assert wrong == "1 thing is not as it should be."


def test_volumes_that_could_not_be_checked_are_not_called_well(of_volumes):
    of_volumes.append(Unavailable("The cluster did not answer.", remedy="Wait."))
    assert "WRONG  placed: The engine could not check its volumes: The cluster did not answer.\n" in doctor()[0]


def test_an_engine_that_offers_no_volumes_is_not_asked_about_them(of_volumes, monkeypatch):
    monkeypatch.setattr(PlacedEngine, "offers_volumes", lambda self: False)
    assert doctor()[1] == ""


@pytest.fixture
def of_homes(monkeypatch, tries):
    """What an engine that keeps homes finds of them, or raises."""
    found: list[Finding | Exception | None] = []

    def check_homes(self):
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    verbs = {"home_size": lambda self: 0, "home_use": lambda *given: None, "remove_home": lambda *given: True}
    for name, verb in {**verbs, "check_homes": check_homes}.items():
        monkeypatch.setattr(PlacedEngine, name, verb, raising=False)
    return found


def test_homes_without_their_class_are_said_with_the_remedy(of_homes):
    of_homes.append(Finding(False, "The cluster has no StorageClass fast (home_class).", "Create it."))
    assert "WRONG  placed: The cluster has no StorageClass fast (home_class).\n       Create it.\n" in doctor()[0]


def test_homes_that_could_not_be_checked_are_not_called_well(of_homes):
    of_homes.append(Unavailable("The cluster did not answer.", remedy="Wait."))
    words = "The engine could not check its homes of notebooks: The cluster did not answer."
    assert f"WRONG  placed: {words}\n" in doctor()[0]


def test_homes_of_which_nothing_is_set_are_not_mentioned(of_homes):
    of_homes.append(None)
    said, wrong = doctor()
    assert "home" not in said
    assert wrong == ""


def test_a_workbench_with_one_origin_for_all_is_said_with_the_remedy(tries, settings):
    settings.PUBLIC_URL = "http://10.0.0.5:8080"
    settings.YARDMASTER_WORKBENCH_ORIGINS = origins("http://10.0.0.5:8081", settings.PUBLIC_URL)
    said, wrong = doctor()
    assert "share the origin http://10.0.0.5:8081, so no Jupyter is started. [yardmaster.W001]\n       Set" in said
    assert "Sessions at 10.0.0.5 can set cookies" in said
    assert "[yardmaster.W002]\n       Serve the portal over https" in said
    assert wrong == "2 things are not as it should be."
    settings.YARDMASTER_WORKBENCH_SHARED_ORIGIN = True
    assert "can act in the sessions of others (YARDMASTER_WORKBENCH_SHARED_ORIGIN). [yardmaster.W001]" in doctor()[0]


def test_the_address_of_the_workbench_is_no_matter_of_a_start(settings):
    settings.YARDMASTER_WORKBENCH_ORIGINS = origins("http://10.0.0.5:8081", "http://10.0.0.5:8080")
    assert not [one for one in run_checks() if one.id in ("yardmaster.W001", "yardmaster.W002")]
