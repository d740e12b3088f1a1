"""Mistakes in the settings are told before the first job runs."""

from django.core.checks import run_checks


def ids() -> set[str]:
    return {message.id for message in run_checks() if message.id.startswith("yardmaster.")}


def test_the_settings_as_they_come_are_sound():
    assert ids() == set()


def test_an_engine_that_cannot_be_made_is_told(settings):
    settings.YARDMASTER_ENGINES = {"local": {"class": "yardmaster.engines.absent.Engine"}}
    assert "yardmaster.E001" in ids()


def test_a_default_engine_that_is_none_is_told(settings):
    settings.YARDMASTER_DEFAULT_ENGINE = "moon"
    assert "yardmaster.E002" in ids()


def test_a_storage_that_cannot_be_made_is_told(settings):
    settings.YARDMASTER_STORAGE = {"class": "yardmaster.storage.absent.Storage", "options": {}}
    assert "yardmaster.E003" in ids()
