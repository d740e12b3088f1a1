"""How JupyterLab is begun in a session: with nothing of the home, and without what takes long and serves nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from yardmaster_runner.workbench import jupyter

MAIN = """
import sys

def main():
    import tornado
    try:
        import rfc3987_syntax
    except ImportError:
        print(sys.argv[1:], tornado.__file__)
"""


def test_it_begins_with_nothing_of_the_home_and_no_parser_of_iris(tmp_path: Path):
    home, packages = tmp_path / "home", tmp_path / "packages"
    for folder in (home, packages / "jupyterlab"):
        folder.mkdir(parents=True)
    (home / "tornado.py").write_text("raise SystemExit('a file of the home')\n")
    for name in ("tornado", "rfc3987_syntax"):
        (packages / f"{name}.py").touch()
    (packages / "jupyterlab" / "__init__.py").touch()
    (packages / "jupyterlab" / "labapp.py").write_text(MAIN)
    done = subprocess.run(
        [sys.executable, "-c", jupyter.START, "--a=b"], cwd=home, env={"PYTHONPATH": str(packages)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"['--a=b'] {packages / 'tornado.py'}\n", "")
