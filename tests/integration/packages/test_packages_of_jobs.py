"""Jobs with packages of their own, on the local engine: what is installed, what is shared, and what is said."""

from __future__ import annotations

import httpx2

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


def _get(scene: Scene, path: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {scene.token}"}
    return httpx2.get(f"{scene.portal.url}/api/v1/{path}", headers=headers, timeout=60)


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


def test_the_job_records_what_was_installed_and_gives_it_as_a_file(portal_with_index: Scene) -> None:
    code = portal_with_index.put_code({"main.py": SCRIPT}, "recorded")
    client = portal_with_index.client
    spec = portal_with_index.spec(code, requirements=["greet>=2"])
    job = portal_with_index.ended(client.jobs.launch(spec))
    assert job.phase == "SUCCEEDED", job.message
    found = _get(portal_with_index, f"jobs/{job.id}/packages/").json()
    assert [(one["name"], one["version"]) for one in found["results"]] == [("greet", "2.0"), ("polite", "1.5")]
    text = _get(portal_with_index, f"jobs/{job.id}/packages.txt").text
    assert text.startswith("greet==2.0 --hash=sha256:")
    exact = portal_with_index.spec(code, requirements=text.split("\n")[:2])
    again = portal_with_index.ended(client.jobs.launch(exact))
    assert again.phase == "SUCCEEDED", (again.message, portal_with_index.lines(again))


BAD = {
    "pandsa": "has no wheel of it",
    "greet==7": "It has 1.0, 2.0",
    "quarrel\ngreet>=2": "quarrel 1.0 depends on polite<1",
    "newer": "newer 1.0 depends on numpy<1",
    "lonely": "absent>=1 (needed by lonely): the index has no wheel of it",
    "-e git+https://host/x.git": "names an address",
}


def test_what_cannot_be_installed_is_said_in_plain_words_and_not_tried_again(portal_with_index: Scene) -> None:
    jobs = {}
    for number, lines in enumerate(BAD):
        code = portal_with_index.put_code({"main.py": "", "requirements.txt": lines}, f"bad{number}")
        jobs[lines] = portal_with_index.client.jobs.launch(portal_with_index.spec(code, retries=3))
    for lines, job in jobs.items():
        ended = portal_with_index.ended(job)
        said = (lines, ended.message, portal_with_index.lines(job))
        assert (ended.phase, ended.reason) == ("FAILED", "PackagesFailed"), said
        assert BAD[lines] in ended.message, said


def test_no_packages_are_installed_where_the_specification_says_so(portal_with_index: Scene) -> None:
    code = portal_with_index.put_code({"main.py": "print('ran')", "requirements.txt": "pandsa\n"}, "none")
    job = portal_with_index.ended(portal_with_index.client.jobs.launch(portal_with_index.spec(code, requirements=[])))
    assert job.phase == "SUCCEEDED", job.message


def test_what_the_image_has_is_not_installed_again(portal_with_index: Scene, index: PackageIndex) -> None:
    asked = len(index.requests)
    code = portal_with_index.put_code({"main.py": "import numpy", "requirements.txt": "numpy>=1\ntensorflow\n"}, "has")
    job = portal_with_index.ended(portal_with_index.client.jobs.launch(portal_with_index.spec(code)))
    lines = portal_with_index.lines(job)
    assert job.phase == "SUCCEEDED", (job.message, lines)
    assert any("the image has all of them" in one for one in lines), lines
    assert len(index.requests) == asked


def test_tasks_of_one_job_install_once(portal_with_index: Scene, index: PackageIndex) -> None:
    asked = sum("/files/" in one for one in index.requests)
    script = "import greet, time; print(greet.greeting())"
    code = portal_with_index.put_code({"main.py": script, "requirements.txt": "greet==1.0\n"}, "several")
    roles = {"worker": {"replicas": 3, "cpu": 0.1, "memory": "256Mi"}}
    job = portal_with_index.client.jobs.launch(portal_with_index.spec(code, strategy="batch", roles=roles))
    assert portal_with_index.ended(job).phase == "SUCCEEDED"
    logs = [portal_with_index.lines(job, index=number) for number in range(3)]
    assert sum(any("1 package installed" in line for line in one) for one in logs) == 1, logs
    assert sum("/files/" in one for one in index.requests) == asked + 1
