"""One notebook of a session at a time has executors of a registered Spark cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from yardmaster_runner.workbench import spark_turns
from yardmaster_runner.workbench.spark_turns import Turn


class _Context:
    """As that of pyspark: `stop` may be called again, and by a beginning that fails."""

    def __init__(self, master: str | None = None, conf: dict[str, str] | None = None) -> None:
        if conf == {"spark.app.name": "broken"}:
            self.stop()
            raise ValueError("broken")

    def stop(self) -> None:
        pass


def notebook(path: Path) -> type[_Context]:
    """The `SparkContext` of a kernel of its own."""
    module = ModuleType("context")
    module.SparkContext = type("SparkContext", (_Context,), {})  # type: ignore[attr-defined]
    Turn(str(path / "turn"), "farm").keep(module)
    found: type[_Context] = module.SparkContext  # type: ignore[attr-defined]
    return found


def test_a_second_notebook_is_told_who_has_the_turn_until_it_is_given_back(tmp_path: Path) -> None:
    first, second = notebook(tmp_path), notebook(tmp_path)
    context = first()
    with pytest.raises(RuntimeError, match=r"uses the Spark cluster farm; .* Call spark\.stop\(\) there"):
        second()
    context.stop()
    context.stop()
    second().stop()


def test_a_context_that_fails_and_one_of_its_own_process_hold_none(tmp_path: Path) -> None:
    first, second = notebook(tmp_path), notebook(tmp_path)
    with pytest.raises(ValueError, match="broken"):
        first(conf={"spark.app.name": "broken"})
    other = second()
    first("local[2]")
    first(conf={"spark.master": "local"})
    other.stop()


def test_kernels_keep_to_it_where_they_are_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = list(sys.meta_path)
    spark_turns.load_ipython_extension(None)
    assert sys.meta_path == before
    for name, value in spark_turns.variables(str(tmp_path / "turn"), "farm").items():
        monkeypatch.setenv(name, value)
    package = tmp_path / "pyspark" / "core"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "context.py").write_text("class SparkContext:\n    def stop(self):\n        pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spark_turns.load_ipython_extension(None)
    from pyspark.core import context

    assert (tmp_path / "turn").exists() is False
    context.SparkContext().stop()
    assert (tmp_path / "turn").exists()
