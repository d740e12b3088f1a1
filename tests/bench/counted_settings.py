"""The portal's settings, with the number of statements of the database said in each answer: for measurements alone."""

from __future__ import annotations

from portal.settings import *  # noqa: F403

MIDDLEWARE = ["tests.bench.counted_statements.CountStatements", *MIDDLEWARE]  # noqa: F405
