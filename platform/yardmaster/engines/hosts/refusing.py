"""Which jobs no machine of the engine runs, whatever is free. Pure."""

from __future__ import annotations

from yardmaster.errors import Problem
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import TrainingSpec


def problems_of(spec: TrainingSpec) -> list[Problem]:
    """All of them."""
    problems = []
    if spec.program == JUPYTER:
        message = "Machines that are reached by SSH run no JupyterLab."
        problems.append(Problem("engine", "no_workbench", message, "Choose another engine for the session."))
    for role, one in spec.roles.items():
        for name, amount in one.resources.extended.items():
            field = f"roles.{role.value}.extended.{name}"
            message, remedy = f"The machines have no {name}.", "Leave it out, or choose another engine."
            problems.append(Problem(field, "no_such_resource", message, remedy, str(amount)))
    return problems
