"""What a script may import of ours comes whole, with the packages below it, and needs no library until it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yardmaster_runner.data
from tests.unit.runner.test_runner_stalls import ORDER
from yardmaster_runner import offered


def test_packages_below_those_that_are_offered_are_copied_too(tmp_path: Path) -> None:
    offered.make(str(tmp_path), ORDER)
    top = Path(offered.folder_in(str(tmp_path))) / "yardmaster_runner" / "data"
    source = Path(yardmaster_runner.data.__file__).parent
    there = {one.relative_to(source) for one in source.rglob("*.py")}
    assert {one.relative_to(top) for one in top.rglob("*.py")} == there
    assert Path("ignite_reader/scan.py") in there


def test_importing_what_is_offered_needs_only_the_standard_library(tmp_path: Path) -> None:
    offered.make(str(tmp_path), ORDER)
    script = "import sys\nfrom yardmaster_runner import data\ndata.ignite, data.IgniteDataset\n"
    script += "print(sorted({'numpy', 'tensorflow'} & set(sys.modules)))"
    command = [sys.executable, "-S", "-c", script]
    done = subprocess.run(command, cwd=offered.folder_in(str(tmp_path)), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
