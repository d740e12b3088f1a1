"""Which client this is, and which API it speaks. Read by the portal too, which serves this package as a wheel."""

VERSION = "0.1.0"
"""Raised with each change of this package that is released: pip keeps what has the same version."""
API = 1
"""The major version of the portal's API that this client speaks, `/api/v1/`."""
HEADER = "Yardmaster-Client"
"""What a client says of itself with each request: `0.1.0; api=1`."""
ANSWERED = "Yardmaster-Portal"
"""What the portal says to such a client: `0.2.0; api=1; oldest-client=0.1.0`."""
