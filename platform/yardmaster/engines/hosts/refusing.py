"""Which jobs no machine of the engine runs, whatever is free. Pure."""

from __future__ import annotations

from yardmaster.engines.hosts.environment import INSTALL_WORKBENCH
from yardmaster.errors import Problem
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import TrainingSpec


def problems_of(spec: TrainingSpec, *, has_workbench: bool) -> list[Problem]:
    """All of them. `has_workbench`: whether some machine has JupyterLab."""
    problems = []
    if spec.program == JUPYTER and not has_workbench:
        message, remedy = (
            "JupyterLab is not installed on any machine.",
            f"{INSTALL_WORKBENCH}, or choose another engine.",
        )
        problems.append(Problem("engine", "no_workbench", message, remedy))
    for role, one in spec.roles.items():
        for name, amount in one.resources.extended.items():
            field = f"roles.{role.value}.extended.{name}"
            message, remedy = f"The machines have no {name}.", "Leave it out, or choose another engine."
            problems.append(Problem(field, "no_such_resource", message, remedy, str(amount)))
    return problems
