"""The settings of `tests.real.settings`, for tests that count to the last one what is let through.

The web process waits for a message server that stands still, as any does for a moment on a busy machine: it would begin
to count in its own memory instead, and let through as much again. One that is away is noticed at once all the same.
"""

from apps.api import allowances
from tests.real.settings import *  # noqa: F403

allowances.PATIENCE = 10.0
