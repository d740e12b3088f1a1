"""The wheel of the client: what is in it, what it needs, and that it is the same each time."""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import io
import sys
import tomllib
import zipfile
from importlib.metadata import version

import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

from apps.client import wheel as made
from tests.real.portal import ROOT
from yardmaster_client.version import VERSION

OPTIONAL = {"IPython"}
"""Used where they are there."""
DISTRIBUTIONS = {"yaml": "pyyaml"}


def files() -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(made.wheel().content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def imported(text: bytes) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_the_same_sources_give_the_same_bytes():
    assert made.wheel_of(made.package_files()) == made.wheel().content
    assert hashlib.sha256(made.wheel().content).hexdigest() == made.wheel().sha256


def test_its_name_is_that_of_a_pure_wheel_of_the_projects_version():
    name, number, _, tags = parse_wheel_filename(made.wheel().name)
    assert (name, str(number), {str(tag) for tag in tags}) == ("yardmaster-client", VERSION, {"py3-none-any"})
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_the_record_names_every_file_with_its_checksum():
    found = files()
    (record,) = (name for name in found if name.endswith("/RECORD"))
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(found[record].decode()))}
    assert rows.pop(record) == ["", ""]
    for name, (checksum, size) in rows.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(found[name]).digest()).rstrip(b"=").decode()
        assert (checksum, int(size)) == (f"sha256={digest}", len(found[name]))
    assert {*rows, record} == set(found)


def test_it_has_one_package_and_imports_nothing_of_ours_but_that():
    found = {name: text for name, text in files().items() if name.endswith(".py")}
    assert {name.partition("/")[0] for name in found} == {"yardmaster_client"}
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in found}
    every = {one for text in found.values() for one in imported(text)}
    ours = {one for one in every if one.partition(".")[0].startswith("yardmaster")}
    assert ours <= modules
    assert "yardmaster_client.from_runner.receiving" in ours


def test_it_asks_for_what_it_imports_and_for_no_more():
    every = {one.partition(".")[0] for name, text in files().items() if name.endswith(".py") for one in imported(text)}
    others = {one for one in every if one not in sys.stdlib_module_names and one != "yardmaster_client"} - OPTIONAL
    asked = {Requirement(one).name for one in made.REQUIREMENTS}
    assert asked == {DISTRIBUTIONS.get(one, one) for one in others}


@pytest.mark.parametrize("requirement", made.REQUIREMENTS)
def test_what_is_tested_here_is_within_what_it_asks_for(requirement: str):
    asked = Requirement(requirement)
    assert asked.specifier.contains(version(asked.name))


@pytest.mark.parametrize("line", ["from yardmaster_runner.cluster import Task", "import yardmaster_runner.cluster"])
def test_a_module_of_the_runner_that_needs_more_of_it_is_refused(line: str):
    with pytest.raises(ValueError, match="does not have"):
        made._standing_alone("receiving", f"def later():\n    {line}\n")
