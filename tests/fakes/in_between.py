"""What proxies, firewalls and web servers answer in the portal's stead: status, Content-Type and body."""

from __future__ import annotations

import json

PAGE = b"<!doctype html><html><title>Sign in</title>" + b"<p>Welcome to the network.</p>" * 100
OTHER_PROBLEM = {"status": 404, "code": "route_not_found", "detail": "no route"}
WRONG_HOST = {"status": 400, "code": "host_refused", "detail": "not this Host"}
FOREIGN = {
    "a wrong Host, as a page": (400, "text/html", PAGE),
    "a wrong Host, as a problem": (400, "application/problem+json", json.dumps(WRONG_HOST).encode()),
    "a proxy that wants a password": (401, "text/html", PAGE),
    "a firewall": (403, "text/html", PAGE),
    "a web server that knows no such page": (404, "text/plain", b"404 page not found"),
    "a gateway with problems of its own": (404, "application/problem+json", json.dumps(OTHER_PROBLEM).encode()),
    "codes like the portal's, as plain JSON": (404, "application/json", b'{"status": 404, "code": "unknown_task"}'),
    "a removed address": (410, "text/html", PAGE),
    "a proxy that takes less": (413, "text/html", PAGE),
    "a proxy that understands nothing": (422, "application/json", b"{}"),
    "a redirection": (302, "text/html", PAGE),
    "a page to sign in at": (200, "text/html", PAGE),
    "an empty answer": (200, "text/plain", b""),
    "JSON of something else": (200, "application/json", b'{"status": "ok"}'),
}
