"""Where checkpoints and outputs of a job are to lie: what a launch may say, and which keys follow from it. No Ignite is
asked: the store connects when it is used."""

from __future__ import annotations

import pytest

from apps.jobs.state.results import kept_elsewhere, kept_folder, results_folder
from apps.jobs.worker.removal import _places_of
from yardmaster.errors import SpecRejected


@pytest.fixture
def with_ignite(settings):
    options = {"hosts": "127.0.0.1:9", "base_url": "http://testserver", "signing_key": "k" * 32}
    settings.YARDMASTER_IGNITE = {"class": "yardmaster.storage.ignite.IgniteStorage", "options": options}


def test_without_the_setting_it_is_refused_and_the_remedy_names_it(world, ada, settings):
    settings.YARDMASTER_IGNITE = {}
    with pytest.raises(SpecRejected) as rejected:
        world.launch(ada, checkpoint_store="ignite")
    (problem,) = rejected.value.problems
    assert (problem.field, problem.code) == ("checkpoint_store", "no_ignite_store")
    assert "YARDMASTER_IGNITE_STORE" in problem.remedy


def test_the_keys_of_each_attempt_say_its_store(world, ada, with_ignite):
    plain, kept = world.launch(ada), world.launch(ada, checkpoint_store="ignite")
    assert kept_folder(plain, 1) == f"{results_folder(plain)}/1"
    assert kept_folder(kept, 1) == f"ignite/{results_folder(kept)}/1"
    assert kept_elsewhere(plain) == []
    assert _places_of(kept)[:2] == [results_folder(kept), f"ignite/{results_folder(kept)}"]


def test_the_launch_form_offers_it_where_it_is_set(world, ada, signed_in, settings, with_ignite):
    me = signed_in(ada)
    assert 'name="checkpoint_store"' in me.get("/jobs/launch/").content.decode()
    settings.YARDMASTER_IGNITE = {}
    assert 'name="checkpoint_store"' not in me.get("/jobs/launch/").content.decode()
