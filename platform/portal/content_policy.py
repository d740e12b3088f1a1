"""Middleware: what a page may load, where it may send, and what of the visitor's device it may use.

Nothing from another origin, but for files that go to the object store and come from it, and no script in the page
itself: text that slips into a page unescaped still cannot act.

Not here: the policy of stored files that people look at; a view that sets its own keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponseBase

from apps.stores import PICTURES_FROM, own_storage
from yardmaster.storage.base import Audience, Storage

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",  # Tabler's style sheet holds its small pictures as data
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}

_ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]_-]+", re.ASCII)
"""Nothing that would end the directive."""


def _written(policy: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in policy.items())


POLICY = _written(_POLICY)


def policy_with(store: Storage, pictures_from: str = "") -> str:
    """The same for pages that send files to the object store, and read pictures from it, where it has a server of its
    own. `pictures_from`: the origin of another server whose pictures this page shows."""
    policy = dict(_POLICY)
    if store.served() is None:
        origin = store.origin(Audience.PEOPLE)
        policy |= {name: f"{_POLICY[name]} {origin}" for name in ("connect-src", "img-src")}
    if _ORIGIN.fullmatch(pictures_from) and pictures_from not in policy["img-src"].split():
        policy["img-src"] += f" {pictures_from}"
    return _written(policy)


FEATURES = ", ".join(
    f"{name}=()"
    for name in (
        "accelerometer",
        "autoplay",
        "bluetooth",
        "browsing-topics",
        "camera",
        "display-capture",
        "encrypted-media",
        "gamepad",
        "geolocation",
        "gyroscope",
        "hid",
        "idle-detection",
        "local-fonts",
        "magnetometer",
        "microphone",
        "midi",
        "payment",
        "picture-in-picture",
        "screen-wake-lock",
        "serial",
        "usb",
        "xr-spatial-tracking",
    )
)
"""Nothing of these: the portal uses none, and a script that slips in gets none either. The clipboard is not here: pages
copy commands to it. Nor are passkeys: pages sign in with them, and no other site may through a frame."""


class ContentPolicy:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        policy = policy_with(own_storage(), request.META.get(PICTURES_FROM, ""))
        response.headers.setdefault("Content-Security-Policy", policy)
        response.headers.setdefault("Permissions-Policy", FEATURES)
        return response
