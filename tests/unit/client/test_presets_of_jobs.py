"""A job file that a preset of the portal fills in."""

from __future__ import annotations

import pytest

from yardmaster_client.cli.job_request import preset_named
from yardmaster_client.jobfile import JobFile, with_preset
from yardmaster_client.names import NotFound

SMALL = {
    "name": "Small", "engine": "local",
    "spec": {
        "strategy": "between_graph", "max_runtime": "2h",
        "roles": {"ps": {"replicas": 1}, "worker": {"replicas": 2, "cpu": 2}},
    },
}  # fmt: skip


class Portal:
    def launch_presets(self):
        return [SMALL]


def test_it_says_what_the_file_omits_and_nothing_else():
    file = JobFile({"name": "digits", "max_runtime": "1h", "roles": {"worker": {"replicas": 4}}})
    made = with_preset(file, SMALL)
    assert made.spec == {
        "name": "digits", "strategy": "between_graph", "max_runtime": "1h",
        "roles": {"worker": {"replicas": 4, "cpu": 2}, "ps": {"replicas": 1}},
    }  # fmt: skip
    assert made.engine == "local"
    assert with_preset(JobFile({}, engine="cluster"), SMALL).engine == "cluster"
    assert with_preset(JobFile({"name": "digits"}), SMALL).spec["roles"] == SMALL["spec"]["roles"]


def test_a_file_with_another_strategy_is_refused():
    with pytest.raises(ValueError, match="strategy single, and the preset Small between_graph"):
        with_preset(JobFile({"strategy": "single"}), SMALL)


def test_it_is_found_by_its_name_in_any_capitals():
    assert preset_named(Portal(), "small") is SMALL
    with pytest.raises(NotFound, match="There are: Small"):
        preset_named(Portal(), "huge")
