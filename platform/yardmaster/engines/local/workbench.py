"""What a session of JupyterLab is given on this machine beside what every task is: the Python that has JupyterLab, and
a home that is kept between sessions.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from yardmaster.errors import Problem
from yardmaster.ids import JobKey
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import TrainingSpec

HOME = "YARDMASTER_HOME_DIR"


@dataclass(frozen=True)
class Workbench:
    """`root` is the engine's folder; `python` the interpreter with JupyterLab, empty where there is none."""

    root: Path
    python: str

    def refusal(self, spec: TrainingSpec) -> Problem | None:
        """Why this is not run here; None where it is, or is no such session."""
        if spec.program != JUPYTER or shutil.which(self.python) is not None:
            return None
        return Problem(
            "program",
            "no_workbench",
            f"There is no Python with JupyterLab at {self.python}."
            if self.python
            else "No Python with JupyterLab is set.",
            "Run make setup, or name one in YARDMASTER_WORKBENCH_PYTHON.",
        )

    def python_for(self, spec: TrainingSpec, usual: str) -> str:
        return self.python if spec.program == JUPYTER else usual

    def variables(self, spec: TrainingSpec, key: JobKey) -> dict[str, str]:
        """What the session's task is told. Touches nothing."""
        return {HOME: str(self._home(spec, key))} if spec.program == JUPYTER else {}

    def make_home(self, spec: TrainingSpec, key: JobKey) -> None:
        """Where it is not there yet; of the portal's user alone. Raises `OSError`."""
        if spec.program == JUPYTER:
            home = self._home(spec, key)
            for folder in (home.parent.parent, home.parent, home):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _home(self, spec: TrainingSpec, key: JobKey) -> Path:
        """One for each member of a namespace, whose id the rules of specifications keep to an id's form."""
        return self.root / "workbench" / str(key.namespace_id) / str(spec.options["owner"])
