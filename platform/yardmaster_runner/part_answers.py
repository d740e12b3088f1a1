"""What a store says that does not take a part, in words for the page of a job. Pure.

Only the code is quoted: the rest of an answer may hold keys and addresses, or come from a proxy.
"""

from __future__ import annotations

import re

from yardmaster_runner.answers import json_object, portals_code

LONGEST_ANSWER = 64 << 10
_CODE = re.compile(rb"<Error\b[^>]*>.{0,2000}?<Code>([\w.-]{1,60})</Code>", re.DOTALL)
_FULL = "the object store is full"
_DAMAGED = "the bytes that arrived have another checksum"
_REFUSED = "the object store refuses the signed address"
_MEANINGS = {
    "XMinioStorageFull": _FULL,
    "StorageFull": _FULL,
    "QuotaExceeded": _FULL,
    "XMinioAdminBucketQuotaExceeded": _FULL,
    "storage_full": _FULL,
    "BadDigest": _DAMAGED,
    "XAmzContentChecksumMismatch": _DAMAGED,
    "XAmzContentSHA256Mismatch": _DAMAGED,
    "checksum_mismatch": _DAMAGED,
    "AccessDenied": _REFUSED,
    "SignatureDoesNotMatch": _REFUSED,
    "address_refused": _REFUSED,
}


def refusal(status: int, kind: str, content: bytes) -> str:
    """Why a part was not taken, with the code of S3's XML or of the portal's own problem; `kind` is the Content-Type.
    An answer with neither comes from something in between."""
    found = _CODE.search(content)
    code = found[1].decode("ascii", "replace") if found else portals_code(status, kind, json_object(content))
    if code in _MEANINGS:
        return "%s (%s)" % (_MEANINGS[code], code)
    if code:
        return "the object store answers %d (%s)" % (status, code)
    if status == 507:
        return "%s (%d)" % (_FULL, status)
    return "%d was answered, and not in the store's words" % status
