"""The portal's settings, for the portals of tests: all the same, but a password is hashed in no time. A suite that
guesses hundreds of them would wait minutes for that alone. What shows how costly passwords are bounded
(`tests/hostile/test_tokens.py`) has those of the portal (`tests.real.settings_of_dear_passwords`).
"""

from portal.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
