"""What changed between two revisions of a template, in words."""

from __future__ import annotations

import time
from typing import Any

import pytest

from yardmaster.job.template_changes import MOST_CHANGES, MOST_TEXT, Said, changes

SPEC: dict[str, Any] = {
    "name": "digits", "strategy": "single", "code": "0a", "entry_point": "train.py",
    "arguments": ["--lr={{lr}}", "--epochs=3"], "environment": {"MODE": "usual"}, "retries": 0,
    "inputs": [{"dataset_version": "0b", "at": "digits"}],
    "roles": {"worker": {"replicas": 1, "cpu": 1.0}},
}  # fmt: skip
NAMED = {"code": "train, version 1", "inputs.0": "digits, version 4"}
FIRST = Said(SPEC, "", {}, NAMED, [{"name": "lr", "kind": "number", "default": 0.1}])


def changed(**spec: Any) -> list[str]:
    return changes(FIRST, Said({**SPEC, **spec}, "", {}, NAMED, FIRST.parameters))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, []),
        ({"arguments": ["--lr={{lr}}", "--epochs=9"]}, ["Arguments changed from --epochs=3 to --epochs=9"]),
        ({"arguments": ["--lr={{lr}}"]}, ["Arguments removed: --epochs=3"]),
        ({"arguments": [*SPEC["arguments"], "-v", "-x"]}, ["Arguments added: -v -x"]),
        ({"environment": {}}, ["Variable MODE removed; it was usual"]),
        ({"environment": {"MODE": ""}}, ["Variable MODE changed from usual to the empty text"]),
        ({"environment": {"MODE": "usual", "A": "1"}}, ["Variable A added: 1"]),
        ({"roles": {"worker": {"replicas": 3, "cpu": 1.0}}}, ["Worker, replicas changed from 1 to 3"]),
        ({"roles": {"worker": {"replicas": 1, "cpu": 3.0}}}, ["Worker, CPU changed from 1.0 to 3.0"]),
        ({"retries": 2}, ["Retries changed from 0 to 2"]),
        ({"max_seconds": 60}, ["Max seconds added: 60"]),
        ({"extra": None, "more": []}, []),
        ({"inputs": []}, ["Input 1 removed; it was digits, version 4", "Input 1, at removed; it was digits"]),
    ],
)
def test_each_difference_is_one_sentence(spec, words):
    assert changed(**spec) == words


def test_versions_are_named_and_what_follows_the_latest_is_said():
    fixed = Said({**SPEC, "code": "0c"}, "", {}, NAMED | {"code": "train, version 2"}, FIRST.parameters)
    assert changes(FIRST, fixed) == ["Code changed from train, version 1 to train, version 2"]
    follows = Said(SPEC, "", {"inputs.0": "0d"}, NAMED, FIRST.parameters)
    assert changes(FIRST, follows) == ["Input 1 changed from digits, version 4 to the latest version of digits"]


def test_parameters_and_the_engine():
    other = [{"name": "lr", "kind": "number", "default": 0.2}, {"name": "note", "kind": "text", "default": ""}]
    assert changes(FIRST, Said(SPEC, "gke", {}, NAMED, other)) == [
        "Engine changed from the default one to gke",
        "Parameter lr, default changed from 0.1 to 0.2",
        "Parameter note, kind added: text",
    ]


def test_long_values_are_cut():
    (words,) = changed(environment={"MODE": "x" * 10_000})
    assert len(words) < MOST_TEXT + 60


def test_a_thousand_arguments_are_compared_in_a_moment_and_many_changes_are_counted():
    begun = time.process_time()
    old = Said({"arguments": ["x"] * 1000})
    [said] = changes(old, Said({"arguments": ["x", "y"] * 500}))
    assert said.startswith("Arguments changed from x x x")
    assert changes(old, Said({"arguments": ["x"] * 999 + ["y"]})) == ["Arguments changed from x to y"]
    assert changes(old, Said({"arguments": ["x"] * 999})) == ["Arguments removed: x"]
    many = changed(environment={f"V{n}": "1" for n in range(500)})
    assert (len(many), many[-1]) == (MOST_CHANGES + 1, "451 more changes")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("x" * 200 + "1", "x" * 200 + "2", "Variable MODE changed; it begins, or reads, as before: " + "x" * 119 + "…"),
        ("1", 1, "Variable MODE changed; it begins, or reads, as before: 1"),
        (True, 1, "Variable MODE changed from yes to 1"),
    ],
)
def test_what_differs_only_behind_the_cut_or_in_its_kind_is_a_change(old, new, words):
    assert changes(Said({"environment": {"MODE": old}}), Said({"environment": {"MODE": new}})) == [words]
