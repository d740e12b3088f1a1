"""The kernels of a session's JupyterLab, which can be listed while they start: Jupyter's own have no time of their last
use until they have started, and a list that is asked for a moment before is an error 500.

Imported by Jupyter's server, which `jupyter` starts with it.
"""

from __future__ import annotations

import importlib
from datetime import datetime, timezone
from typing import Any

_KernelManager: Any = importlib.import_module("jupyter_server.services.kernels.kernelmanager").ServerKernelManager
_default: Any = importlib.import_module("traitlets").default


class Kernel(_KernelManager):  # type: ignore[misc]  # of a library that is not installed here
    """Jupyter's own, last used when it was asked for."""

    @_default("last_activity")  # type: ignore[untyped-decorator]
    def _asked_for(self) -> datetime:
        return datetime.now(timezone.utc)
