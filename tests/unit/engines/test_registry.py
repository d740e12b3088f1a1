"""Engines by name: every mistake in the setting is named with its place."""

from __future__ import annotations

import pytest

from yardmaster.engines.fake import FakeEngine
from yardmaster.engines.local import LocalEngine
from yardmaster.engines.registry import EngineRegistry, engine_from
from yardmaster.errors import Misconfigured

FAKE = "yardmaster.engines.fake.FakeEngine"
LOCAL = "yardmaster.engines.local.LocalEngine"


def test_an_engine_is_made_once_and_bears_the_name_of_the_setting():
    registry = EngineRegistry({"a": {"class": FAKE}, "b": {"class": FAKE}})
    assert registry.names == ("a", "b")
    assert isinstance(registry.get("a"), FakeEngine)
    assert registry.get("a") is registry.get("a")
    assert registry.get("a") is not registry.get("b")
    assert registry.get("b").name == "b"


def test_options_reach_the_engine(tmp_path):
    engine = engine_from("here", {"class": LOCAL, "options": {"root": tmp_path, "cpus": 3}})
    assert isinstance(engine, LocalEngine)
    assert engine.capacity().total.cpu == 3


def test_an_unknown_name_says_which_there_are():
    with pytest.raises(Misconfigured, match="no engine 'c'") as wrong:
        EngineRegistry({"a": {"class": FAKE}}).get("c")
    assert wrong.value.remedy == "It has: a."


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, r"YARDMASTER_ENGINES\['x'\] is no engine"),
        ({"options": {}}, r"YARDMASTER_ENGINES\['x'\] is no engine"),
        ({"class": FAKE, "opt": {}}, "a key that means nothing: opt"),
        ({"class": FAKE, "options": []}, r"YARDMASTER_ENGINES\['x'\]\['options'\] is not a table"),
        ({"class": "no.such.Engine"}, r"\['x'\]\['class'\]: 'no.such.Engine' cannot be imported"),
        ({"class": "yardmaster.engines.fake.Nothing"}, "cannot be imported"),
        ({"class": "Engine"}, "cannot be imported"),
        ({"class": "yardmaster.engines.fake.PLENTY"}, "is not a class"),
        (
            {"class": LOCAL, "options": {"root": "/tmp", "rooot": 1}},
            r"\['options'\]\['rooot'\] is no option of LocalEngine",
        ),
        ({"class": LOCAL}, r"\['options'\] lacks 'root'"),
        ({"class": LOCAL, "options": {"root": 5}}, r"YARDMASTER_ENGINES\['x'\]\['options'\]:"),
    ],
)
def test_a_mistake_is_named_with_its_place(config, message: str):
    with pytest.raises(Misconfigured, match=message) as wrong:
        engine_from("x", config)
    assert wrong.value.remedy


def test_a_system_check_gets_one_error_per_engine_that_cannot_be_made():
    registry = EngineRegistry({"good": {"class": FAKE}, "bad": {"class": "no.Engine"}, "worse": None})
    assert [type(problem) for problem in registry.problems()] == [Misconfigured, Misconfigured]
