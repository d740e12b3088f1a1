"""Jobs with packages of their own, on the local engine: what is installed, what is shared, and what is said."""

from __future__ import annotations

from tests.real.package_index import PackageIndex
from tests.real.scene import Scene

SCRIPT = """
import subprocess, sys
import greet
print(greet.greeting(), greet.__file__)
print(subprocess.run(["greet"], capture_output=True, text=True).stdout.strip())
print("python", sys.executable)
"""


def _run(scene: Scene, files: dict[str, str], **changes: object) -> tuple[str, list[str], str]:
    code = scene.put_code({"main.py": SCRIPT, **files}, f"code{len(files)}{abs(hash(str(files) + str(changes)))}")
    job = scene.ended(scene.client.jobs.launch(scene.spec(code, **changes)))
    return job.phase, scene.lines(job), job.message


def test_requirements_of_the_code_are_installed_once_and_shared(portal_with_index: Scene, index: PackageIndex) -> None:
    phase, lines, message = _run(portal_with_index, {"requirements.txt": "# two\ngreet>=2  # the newer\n"})
    assert phase == "SUCCEEDED", (message, lines)
    assert any(one.startswith("hello again from the package") for one in lines), lines
    assert "the program says hello again from the package" in lines
    assert any("2 packages installed" in one and "greet 2.0, polite 1.5" in one for one in lines), lines
    asked = len(index.requests)
    phase, lines, message = _run(portal_with_index, {"requirements.txt": "greet>=2\n", "other.txt": "changed"})
    assert phase == "SUCCEEDED", (message, lines)
    assert any("2 packages from an earlier job" in one for one in lines), lines
    assert "the program says hello again from the package" in lines
    assert len(index.requests) == asked
