"""What the pages of a session say of the session itself: that it is about to stop, or has stopped. Pure.

People who work in JupyterLab do not see the portal's pages. The programs put a script into their pages
(`yardmaster_runner.workbench.notice_tag`) that asks here every so often; asking is no use of the session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from apps.workbench.proxy import answers
from apps.workbench.proxy.contract import Notice
from apps.workbench.proxy.headers import Headers
from apps.workbench.proxy.origins import LENGTH_OF_PREFIX

PATH = b".yardmaster/notice"
"""Below the prefix of a session; the script with `.js` behind it."""
# While the portal is away it says nothing: the next look may find it.
SCRIPT = b"""\
"use strict";
(() => {
    const address = new URL("notice", document.currentScript.src);
    const EVERY = 20000;
    const LOOK =
        "position:fixed;z-index:2147483647;left:50%;bottom:1rem;transform:translateX(-50%);width:max-content;" +
        "max-width:min(40rem,calc(100vw - 2rem));padding:.75rem 1rem;border-radius:.5rem;box-sizing:border-box;" +
        "font:14px/1.5 system-ui,sans-serif;color:#1f2937;background:#fff7d6;border:1px solid #b45309;" +
        "box-shadow:0 4px 16px #0004";
    const LINK = "color:#0b57d0;font-weight:600;text-decoration:underline;margin:0 .75rem";
    const BUTTON = "font:inherit;color:inherit;background:none;border:1px solid;border-radius:.25rem;cursor:pointer";
    let bar = null;
    let closed = "";

    function add(name, style, properties) {
        const made = Object.assign(document.createElement(name), properties);
        made.style.cssText = style;
        return bar.appendChild(made);
    }

    function build() {
        bar = document.createElement("div");
        bar.setAttribute("role", "alert");
        bar.style.cssText = LOOK;
        add("span", "", {});
        add("a", LINK, { target: "_blank", rel: "noopener" });
        add("button", BUTTON, { type: "button", textContent: "Close", onclick: close });
        document.body.append(bar);
    }

    function close() {
        closed = bar.dataset.kind;
        remove();
    }

    function remove() {
        bar?.remove();
        bar = null;
    }

    function show({ message, remedy, link, link_text: kind }) {
        const text = [message, remedy].filter(Boolean).join(" ");
        if (!text) closed = "";
        if (!text || closed === kind) return remove();
        if (!bar) build();
        else bar.setAttribute("aria-live", "off"); // it was read out once
        const [words, way] = bar.children;
        bar.dataset.kind = kind;
        words.textContent = text;
        way.textContent = kind;
        way.href = /^https?:/.test(link) ? link : "";
        way.hidden = !way.getAttribute("href");
    }

    async function look() {
        const answer = await fetch(address, { cache: "no-store" });
        show(await answer.json());
    }

    const again = () => look().catch(() => {}).finally(() => setTimeout(again, EVERY));
    again();
})();
"""


def is_script(raw_path: bytes) -> bool:
    return raw_path[LENGTH_OF_PREFIX:] == PATH + b".js"


def is_ours(raw_path: bytes) -> bool:
    """Whether the proxy answers it itself, and it is no use of the session: the script, or what it asks for."""
    return is_script(raw_path) or raw_path[LENGTH_OF_PREFIX:] == PATH


def script() -> tuple[Headers, bytes]:
    """Headers and body."""
    return answers.with_length(b"text/javascript; charset=utf-8", SCRIPT)


def notice(said: Notice | None) -> tuple[Headers, bytes]:
    """The same. A refusal is answered in the same words (`answers`)."""
    found: Mapping[str, str] = {} if said is None else said._asdict()
    return answers.with_length(b"application/json", json.dumps(found).encode())
