"""Notes of when something was last used: a request is answered also where they cannot be written."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from django.db import OperationalError, transaction

log = logging.getLogger(__name__)


@contextlib.contextmanager
def best_effort(what: str) -> Iterator[None]:
    """Leave out what is written inside where the database takes no writes, as on a full disk, and log a warning that
    begins with `what`. A database that is away altogether fails the request at its next query."""
    try:
        with transaction.atomic():
            yield
    except OperationalError as error:
        log.warning("%s could not be noted: %s", what, error)
