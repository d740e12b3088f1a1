"""The settings of `tests.real.settings_of_exact_counts`, for tests that wait for the end of a minute of the
portal's own log."""

from portal import own_log
from tests.real.settings_of_exact_counts import *  # noqa: F403

SECONDS = 20.0
"""More than a test takes to send what belongs to one minute."""

own_log.MINUTE = SECONDS
