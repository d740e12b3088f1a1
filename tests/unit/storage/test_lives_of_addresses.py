"""How long signed addresses live is said in the source, never in a request: each call that makes one names a constant
of at most a quarter of an hour, or passes on what its own caller named.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Collection, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from yardmaster.storage.base import MAX_EXPIRY

ROOT = Path(__file__).resolve().parents[3]
SOURCES = {"platform/yardmaster": "platform", "platform/portal": "platform", "apps": ".", "celery_worker": "."}
"""The folders of what has keys to sign with, and where their modules' names begin."""
PLACE = {
    "read_url": 1, "part_url": None, "object_url": None, "presigned_url": 3, "read_address": 1, "part_address": 1,
}  # fmt: skip
"""What makes addresses, and which argument is the life; None: only by its name."""
THEIRS = {"get_presigned_url", "presigned_get_object", "presigned_put_object", "presigned_post_policy"}
"""What `minio` has for it, up to seven days."""
PASS_ON = {f"yardmaster.storage.{one}" for one in ("local", "s3", "ignite", "mounted", "divided")}


def calls(names: Collection[str]) -> Iterator[tuple[str, ast.Call, str]]:
    """The module, the call and the name of what is called, of all calls of these. A file that has none of the names is
    not parsed: every worker reads all sources to collect these tests."""
    for folder, root in SOURCES.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text()
            if not any(name in text for name in names):
                continue
            module = ".".join(file.relative_to(ROOT / root).with_suffix("").parts)
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                    if name in names:
                        yield module, node, name


MAKING = list(calls(PLACE))


def test_the_calls_are_found_and_none_is_one_of_the_s3_librarys_own():
    assert len(MAKING) >= 12
    assert {name for _, _, name in MAKING} == set(PLACE)
    assert [(module, name) for module, _, name in calls(THEIRS)] == []


@pytest.mark.parametrize(("module", "call", "name"), MAKING, ids=[f"{one[0]}:{one[1].lineno}" for one in MAKING])
def test_a_call_says_itself_how_long_the_address_lives(module: str, call: ast.Call, name: str):
    place = PLACE[name]
    named = {one.arg: one.value for one in call.keywords}
    life = named["expires"] if place is None or len(call.args) <= place else call.args[place]
    assert isinstance(life, ast.Name), ast.unparse(life)
    if life.id == "expires":
        assert module in PASS_ON
    else:
        value = getattr(importlib.import_module(module), life.id)
        assert life.id.isupper()
        assert timedelta() < value <= MAX_EXPIRY == timedelta(minutes=15)
