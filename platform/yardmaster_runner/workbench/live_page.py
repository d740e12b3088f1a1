"""Has TensorBoard's page show new steps within seconds. By itself it looks every 30 seconds: it takes no shorter time.

A script in the page asks whether events were read since, and presses TensorBoard's own button for it, so zoom and
choices stay as they are. It does nothing while the page is hidden, or where its user has turned reloading off.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Tuple

from yardmaster_runner.workbench.notice_tag import with_notices, with_script

Application = Callable[..., Iterable[bytes]]

NAME = "/yardmaster-live"
SCRIPT = b"""\
"use strict";
(() => {
    const address = new URL("yardmaster-live", document.currentScript.src);
    const EVERY = 2000;
    let shown = null;

    function mayReload() {
        const settings = JSON.parse(localStorage.getItem("_tb_global_settings") || "{}");
        return !document.hidden && settings.autoReload === true;
    }

    async function eventsRead() {
        const answer = await fetch(address, { cache: "no-store" });
        return answer.ok ? answer.text() : shown;
    }

    async function look() {
        const button = document.querySelector("app-header-reload button");
        if (!button || button.disabled || button.classList.contains("loading") || !mayReload()) return;
        const read = await eventsRead();
        if (read !== shown) button.click();
        shown = read;
    }

    const again = () => setTimeout(() => look().catch(() => {}).finally(again), EVERY);
    eventsRead().then((read) => { shown = read; }, () => {}).finally(again);
})();
"""


def live(application: Application, prefix: str, events_read: Callable[[], int]) -> Application:
    """The same WSGI application, below the path `prefix`, with the script in its page. `events_read` says how many
    events it has read: what it shows has changed when the number has."""

    def call(environment: Any, start: Callable[..., Any]) -> Iterable[bytes]:
        path = environment.get("PATH_INFO", "")
        if path == prefix + NAME:
            return _answer(start, "text/plain", b"%d" % events_read())
        if path == prefix + NAME + ".js":
            return _answer(start, "text/javascript", SCRIPT)
        if path in (prefix + "/", prefix + "/index.html"):
            page = b"".join(application(environment, _without_length(start)))
            return [with_notices(with_script(page, "yardmaster-live.js"), prefix + "/")]
        return application(environment, start)

    return call


def _answer(start: Callable[..., Any], content_type: str, body: bytes) -> List[bytes]:
    start("200 OK", [("Content-Type", content_type), ("Cache-Control", "no-store")])
    return [body]


def _without_length(start: Callable[..., Any]) -> Callable[..., Any]:
    def call(status: str, headers: List[Tuple[str, str]], *problem: Any) -> Any:
        return start(status, [one for one in headers if one[0].lower() != "content-length"], *problem)

    return call
