"""What the last `make up` told its processes about a cluster, for the commands that an operator runs beside them: these
mean the same cluster, and the address at which pods reach the portal, also with another port than the usual one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

_NOTE = "cluster-settings.json"
_COMMANDS = ("doctor", "engine_places")
"""Those of `manage.py` that ask engines. Others run in the portal's own processes, or need no engine."""


def note(home: Path, settings: Mapping[str, str]) -> None:
    """Keep what the processes are told besides the operator's own variables; nothing where there is no such thing."""
    file = home / "run" / _NOTE
    draft = file.with_name(f"{_NOTE}.{os.getpid()}")
    draft.write_text(json.dumps(dict(settings)))
    draft.replace(file)


def for_command(arguments: list[str], environment: Mapping[str, str], root: Path) -> dict[str, str]:
    """What a command with these arguments is told besides. Nothing where the operator's own variables say whether there
    is the engine, as in `make up`; a variable of theirs always stands."""
    if not arguments[1:2] or arguments[1] not in _COMMANDS:
        return {}
    if environment.get("YARDMASTER_KUBERNETES") or environment.get("YARDMASTER_KUBECONFIG"):
        return {}
    home = Path(environment.get("YARDMASTER_HOME") or root / ".yardmaster")
    with contextlib.suppress(OSError, ValueError, AttributeError):
        noted = json.loads((home / "run" / _NOTE).read_text())
        return {str(name): str(value) for name, value in noted.items() if not environment.get(name)}
    return {}
