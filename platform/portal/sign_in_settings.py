"""How people and programs sign in: a second factor, OpenID providers, accounts of programs; from the environment.

Not here: passwords, limits of attempts and the lifetime of tokens (`settings`).
"""

from __future__ import annotations

from portal import env

YARDMASTER_SERVICE_ACCOUNTS_PER_NAMESPACE = env.number("YARDMASTER_SERVICE_ACCOUNTS_PER_NAMESPACE", 20, least=0)
"""How many accounts of programs the managers of a namespace may make."""
