"""The portal's settings, for the portals of tests: all the same, but a password is hashed in no time. A suite that
guesses hundreds of them would wait minutes for that alone. What shows how costly passwords are bounded
(`tests/hostile/test_tokens.py`) has those of the portal (`tests.real.settings_of_dear_passwords`).

Several workers run tests beside each other, each with local engines of its own that do not know of each other: each
worker's tasks have ports of their own, of which one machine's engine has all.
"""

import os

from portal.settings import *  # noqa: F403
from portal.settings import YARDMASTER_ENGINES
from yardmaster.engines.supervision.ports import default_range

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

_WORKERS = 4
_ALL = default_range()
_WIDTH = len(_ALL) // _WORKERS
_FIRST = _ALL[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % _WORKERS * _WIDTH]
YARDMASTER_ENGINES["local"]["options"]["port_range"] = [_FIRST, _FIRST + _WIDTH - 1]
