"""What a session of JupyterLab is given on this machine beside what every task is: the Python that has JupyterLab, and
a home that is kept between sessions.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from yardmaster.engines.supervision import homes
from yardmaster.errors import Problem
from yardmaster.ids import JobKey
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import TrainingSpec


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
        return {homes.HOME: str(self._home(spec, key))} if spec.program == JUPYTER else {}

    def make_home(self, spec: TrainingSpec, key: JobKey) -> None:
        """Where it is not there yet; of the portal's user alone. Raises `OSError`."""
        if spec.program == JUPYTER:
            homes.make(self._home(spec, key))

    def home(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> Path:
        """One for each member of a namespace."""
        return homes.home_in(self.root, namespace_id, owner_id)

    def _home(self, spec: TrainingSpec, key: JobKey) -> Path:
        return self.home(key.namespace_id, uuid.UUID(str(spec.options["owner"])))
