"""What the local engine gives a session of JupyterLab: its Python, and a home that is kept."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from tests.contract.engine_harness import new_key
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.local import LocalEngine
from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.errors import SpecRejected
from yardmaster.ids import new_id
from yardmaster.job.programs import JUPYTER, TENSORBOARD
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec

ACCESS = TaskAccess("http://127.0.0.1:9", "token")
OWNER = str(new_id())


def spec_of(program: str) -> TrainingSpec:
    options = (
        {"session": str(new_id()), "owner": OWNER} if program == JUPYTER else {"session": str(new_id()), "bytes": 1}
    )
    roles = {Role.WORKER: RoleSpec(1, Resources(cpu=0.5, memory=1 << 28))}
    return TrainingSpec("s", Strategy.SERVICE, roles, None, "", program=program, options=options)


def engine_in(folder: Path, workbench: str) -> LocalEngine:
    return LocalEngine(folder, python="/bin/true", workbench_python=workbench, open_servers=True, control_group="")


def test_its_runner_is_started_with_jupyterlabs_python_and_others_with_the_usual_one(tmp_path: Path):
    engine = engine_in(tmp_path, sys.executable)
    for program, python in ((JUPYTER, sys.executable), (TENSORBOARD, "/bin/true")):
        (entry,) = engine.preview(spec_of(program), new_key())
        assert entry["command"] == [python, "-m", "yardmaster_runner"]
        assert ("YARDMASTER_HOME_DIR" in entry["environment"]) == (program == JUPYTER)
    assert not list(tmp_path.iterdir()), "a preview touches nothing"


def test_its_home_belongs_to_one_member_of_one_namespace_and_outlives_runs(tmp_path: Path):
    engine, key = engine_in(tmp_path, sys.executable), new_key()
    engine.submit(spec_of(JUPYTER), key, ACCESS)
    try:
        order = RunFolder(engine.root / "runs" / key.name).read_order()
        assert order is not None
        home = Path(order.environment["YARDMASTER_HOME_DIR"])
    finally:
        engine.clean_up(key)
    assert home == engine.root / "workbench" / str(key.namespace_id) / OWNER
    for folder in (home, home.parent, home.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("python", ["", "/no/such/python"])
def test_without_jupyterlab_it_is_refused_with_a_remedy_and_all_else_runs(tmp_path: Path, python: str):
    engine = engine_in(tmp_path, python)
    refusal = engine.refusal(spec_of(JUPYTER))
    assert refusal is not None
    assert (refusal.field, refusal.code) == ("program", "no_workbench")
    assert "make setup" in refusal.remedy
    with pytest.raises(SpecRejected, match="JupyterLab"):
        engine.submit(spec_of(JUPYTER), new_key(), ACCESS)
    assert engine.refusal(spec_of(TENSORBOARD)) is None
    assert engine.preview(spec_of(TENSORBOARD), new_key())
