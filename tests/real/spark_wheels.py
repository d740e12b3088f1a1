"""The wheels that `manage.py machines --install --spark` sends to a machine without Java, kept for all test runs of a
user: fetching them and making pyspark's takes minutes."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.installing import Installer
from yardmaster.engines.hosts.keys import Keys


def spark_wheels() -> list[Path]:
    """Of Spark, of what it needs, and of a Java, for this machine's Python."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yardmaster" / "spark"
    installer = Installer(folder, Links(Keys(folder / "keys")), print)
    hello = {"python": platform.python_version(), "machine": platform.machine(), "java": False}
    kind = installer._spark(hello)
    found = installer._wheels(kind.digest(hello), kind, hello)
    return [path for path in found if not path.name.startswith("uv-")]
