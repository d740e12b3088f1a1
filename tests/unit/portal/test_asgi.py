"""The web process is ready for its first request when it has been loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LOOK = """
import gc, json, sys
import portal.asgi
loaded = set(sys.modules)
from django.urls import resolve
resolve("/jobs/")
json.dump([gc.get_freeze_count(), sum(1 for one in gc.get_objects()), sorted(set(sys.modules) - loaded)], sys.stdout)
"""


def test_every_view_is_loaded_and_the_garbage_collector_passes_over_what_is() -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}"}
    done = subprocess.run([sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, check=True)
    frozen, others, loaded_later = json.loads(done.stdout.splitlines()[-1])
    assert loaded_later == []
    assert frozen > 100_000
    assert others < frozen / 10
