"""What can go wrong between a script and Apache Ignite: one class each, with a stable code, and the remedy in words.

Those that a later start may cure are `DataUnavailable`, all others `DataError`.
"""

from __future__ import annotations

from yardmaster_runner.data.inputs import DataError, DataUnavailable


class IgniteDataError(DataError):
    """The data cannot be read, now or later."""

    code = "ignite_data"


class IgniteSignInError(IgniteDataError):
    """The user or the password is wrong, or the user may not read the cache."""

    code = "ignite_sign_in"


class IgniteCertificateError(IgniteDataError):
    """A certificate, ours or the server's, is refused or cannot be read; or only one side uses TLS."""

    code = "ignite_certificate"


class IgniteCacheError(IgniteDataError):
    """There is no cache of this name, or nothing in it that says what its rows are."""

    code = "ignite_cache"


class IgniteTypeError(IgniteDataError):
    """A field has a type that no tensor can hold, or another type than other rows have."""

    code = "ignite_type"


class IgniteNullError(IgniteDataError):
    """A field has no value in a row, and the script gave none to put there."""

    code = "ignite_null"


class IgniteShapeError(IgniteDataError):
    """An array has another length than the script said."""

    code = "ignite_shape"


class IgnitePartitionError(IgniteDataError):
    """The partitions that this task is told to read are not those of the cache."""

    code = "ignite_partition"


class IgniteQueryError(IgniteDataError):
    """The server refuses a query."""

    code = "ignite_query"


class IgniteUnavailable(DataUnavailable):
    """No server can be reached, or each of them fails again and again."""

    code = "ignite_unavailable"


class IgniteQueryUnavailable(IgniteUnavailable):
    """The connection was lost within an SQL query, whose rows come in no order that would let it resume."""

    code = "ignite_query_cut"


class ServerRefusal(Exception):
    """The server's answer to a request is an error. `status` is its number; translated before a script sees it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ConnectionLost(Exception):
    """The connection ended, or nothing came for too long. The reader continues with another one."""
