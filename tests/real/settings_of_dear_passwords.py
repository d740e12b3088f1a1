"""The settings of `tests.real.settings_of_exact_counts`, but a password takes as long as with the portal's own."""

from django.conf import global_settings

from tests.real.settings_of_exact_counts import *  # noqa: F403

PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
