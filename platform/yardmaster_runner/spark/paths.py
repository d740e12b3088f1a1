"""The module search path of what a program of the runner starts for a script."""

from __future__ import annotations

import os
from typing import Dict, Mapping

from yardmaster_runner.own_programs import runner_root


def without_runner(environment: Mapping[str, str], added: str) -> Dict[str, str]:
    """The same environment, whose path has no folder of the runner, and ends with `added` where that is not empty."""
    mine = os.path.abspath(runner_root())
    parts = [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    kept = [one for one in parts if os.path.abspath(one) != mine]
    return {**environment, "PYTHONPATH": os.pathsep.join([*kept, *([added] if added else [])])}
