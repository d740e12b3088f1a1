"""`Idempotency-Key` on POST: one request runs, its answer is kept for 24 h and replayed when the request is repeated.

A key belongs to one user. It is claimed by an INSERT under a unique constraint, so of two requests at once exactly one
runs. A claim whose request died (no answer after 60 s) may be taken over. Answers of 500 and above are not kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.core.handlers.asgi import ASGIRequest
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.models import IdempotencyRecord
from apps.api.problems import CONTENT_TYPE, ApiProblem, body_of
from apps.errors import Conflict, Invalid
from yardmaster.errors import Problem
from yardmaster.ids import new_id

if TYPE_CHECKING:
    from rest_framework.views import APIView as _Base
else:
    _Base = object

KEPT = timedelta(hours=24)
CLAIM_LASTS = timedelta(seconds=60)
LONGEST_KEY = 200


@dataclass(frozen=True)
class Claim:
    """The right to run a request and to write its answer."""

    record_id: UUID
    claim: UUID


class _Replay(Exception):
    def __init__(self, record: IdempotencyRecord) -> None:
        super().__init__(record.key)
        self.record = record


def idempotency_clean(now: datetime) -> int:
    """Forget answers past their time. Returns how many; may be called at any time."""
    deleted, _ = IdempotencyRecord.objects.filter(claimed_at__lt=now - KEPT).delete()
    return deleted


def key_claim(user: AbstractBaseUser, key: str, fingerprint: str, now: datetime) -> Claim:
    """Claim the key for this request. Raises `_Replay` where it has an answer, 409 while another request holds it, and
    422 where it stands for another request."""
    for _ in range(3):  # again only where the record changed hands or was released between the steps
        try:
            with transaction.atomic():
                record = IdempotencyRecord.objects.create(
                    user_id=user.pk, key=key, fingerprint=fingerprint, claim=new_id(), claimed_at=now
                )
            return Claim(record.pk, record.claim)
        except IntegrityError:
            existing = IdempotencyRecord.objects.filter(user_id=user.pk, key=key).first()
        if existing is not None and (claim := _claim_of_existing(existing, fingerprint, now)):
            return claim
    raise _still_running()


def _claim_of_existing(record: IdempotencyRecord, fingerprint: str, now: datetime) -> Claim | None:
    """None: another request was faster, look again."""
    forgotten = record.claimed_at < now - KEPT
    if not forgotten and record.fingerprint != fingerprint:
        raise ApiProblem(
            422,
            "idempotency_mismatch",
            "This Idempotency-Key was used for another request.",
            remedy="Use a new key for every new request; repeat a key only with the same address and body.",
        )
    if not forgotten and record.status is not None:
        raise _Replay(record)
    if not forgotten and record.claimed_at >= now - CLAIM_LASTS:
        raise _still_running()
    fresh = new_id()
    taken = IdempotencyRecord.objects.filter(pk=record.pk, claim=record.claim, status=record.status).update(
        claim=fresh, claimed_at=now, fingerprint=fingerprint, status=None, body=""
    )
    return Claim(record.pk, fresh) if taken else None


def _still_running() -> Conflict:
    return Conflict("A request with this Idempotency-Key is still running.", remedy="Repeat it in a few seconds.")


def claim_release(claim: Claim) -> None:
    """Forget a claim whose request came to no answer worth keeping."""
    IdempotencyRecord.objects.filter(pk=claim.record_id, claim=claim.claim).delete()


def answer_keep(claim: Claim, *, status: int, body: str, content_type: str, location: str) -> None:
    """Keep the answer, unless the claim was taken over meanwhile."""
    IdempotencyRecord.objects.filter(pk=claim.record_id, claim=claim.claim).update(
        status=status, body=body, content_type=content_type, location=location
    )


def fingerprint_of(request: Request) -> str:
    """What makes two requests the same: method, address and body."""
    raw = request._request
    digest = hashlib.sha256(f"{raw.method} {raw.get_full_path()}\n".encode())
    if isinstance(raw, ASGIRequest):  # it lies in a file: a large one is not brought into memory
        for piece in iter(lambda: raw._stream.read(1 << 16), b""):
            digest.update(piece)
        raw._stream.seek(0)
    else:
        digest.update(raw.body)
    return digest.hexdigest()


class IdempotentPosts(_Base):
    """Mixin for API views, FIRST among the bases: honours `Idempotency-Key` on POST of signed-in users."""

    posts_are_one_transaction = False
    """Set where POST touches the database alone: claim, changes and answer are then committed together, so that not
    even a crash between them runs a request twice. Never where POST speaks to anything outside."""

    answers_are_secret = False
    """Set where the answer holds a credential: it is not kept, and a repeat learns that the action is done."""

    _claim: Claim | None = None

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not (self.posts_are_one_transaction and request.method == "POST" and "Idempotency-Key" in request.headers):
            return self._released_on_error(request, *args, **kwargs)
        with transaction.atomic():
            response = self._released_on_error(request, *args, **kwargs)
            if response.status_code >= 500:
                transaction.set_rollback(True)
            return response

    def _released_on_error(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return super().dispatch(request, *args, **kwargs)
        except BaseException:
            if self._claim is not None and not self.posts_are_one_transaction:
                claim_release(self._claim)
            raise

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        key = request.headers.get("Idempotency-Key") if request.method == "POST" else None
        if key is None:
            return super().initial(request, *args, **kwargs)
        _check_key(key)
        fingerprint = fingerprint_of(request)  # before anything reads the stream
        super().initial(request, *args, **kwargs)
        if request.user.is_authenticated:
            self._claim = key_claim(request.user, key, fingerprint, timezone.now())
        return None

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, _Replay):
            return _replay(exc.record)  # type: ignore[return-value]
        return super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        if self._claim is not None:
            if final.status_code >= 500:
                claim_release(self._claim)
            else:
                self._keep(self._claim, final)
            self._claim = None
        return final

    def _keep(self, claim: Claim, response: Response) -> None:
        if self.answers_are_secret and response.status_code < 300:
            done = Conflict(
                "This request was already processed. Its response contains a secret and is shown only once.",
                remedy="Repeat it with a new Idempotency-Key to get another.",
            )
            body = JSONRenderer().render(body_of(done)).decode()
            answer_keep(claim, status=409, body=body, content_type=CONTENT_TYPE, location="")
            return
        data = getattr(response, "data", None)
        answer_keep(
            claim,
            status=response.status_code,
            body="" if data is None else JSONRenderer().render(data).decode(),
            content_type=getattr(response, "content_type", None) or "application/json",
            location=response.headers.get("Location", ""),
        )


def _check_key(key: str) -> None:
    if not 1 <= len(key) <= LONGEST_KEY or not (key.isascii() and key.isprintable()):
        message = f"A key is 1 to {LONGEST_KEY} printable ASCII characters."
        raise Invalid([Problem("Idempotency-Key", "invalid", message, "Use a UUID, for instance.", key)])


def _replay(record: IdempotencyRecord) -> HttpResponse:
    response = HttpResponse(record.body.encode(), status=record.status, content_type=record.content_type)
    response.headers["Idempotency-Replayed"] = "true"
    if record.location:
        response.headers["Location"] = record.location
    return response
