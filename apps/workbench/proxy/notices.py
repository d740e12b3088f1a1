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
SCRIPT = b"""\
"use strict";
(() => {
    const address = new URL("notice", document.currentScript.src);
    const EVERY = 20000;
    let bar = null;

    function show({ message, remedy, link, link_text: words }) {
        const text = [message, remedy].filter(Boolean).join(" ");
        if (!text) bar?.remove();
        if (!text || (bar?.isConnected && bar.title === text)) return;
        bar?.remove();
        bar = document.createElement("div");
        bar.setAttribute("role", "alert");
        bar.title = text;
        bar.style.cssText =
            "position:fixed;z-index:2147483647;left:50%;bottom:1rem;transform:translateX(-50%);width:max-content;" +
            "max-width:min(40rem,calc(100vw - 2rem));padding:.75rem 1rem;border-radius:.5rem;box-sizing:border-box;" +
            "font:14px/1.5 system-ui,sans-serif;color:#1f2937;background:#fff7d6;border:1px solid #b45309;" +
            "box-shadow:0 4px 16px #0004";
        bar.append(`${text} `);
        if (/^https?:/.test(link)) {
            const way = document.createElement("a");
            Object.assign(way, { href: link, textContent: words, target: "_blank", rel: "noopener" });
            way.style.cssText = "color:#0b57d0;font-weight:600;text-decoration:underline";
            bar.append(way);
        }
        document.body.append(bar);
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


def is_notice(raw_path: bytes) -> bool:
    return raw_path[LENGTH_OF_PREFIX:] == PATH


def script() -> tuple[Headers, bytes]:
    """Headers and body."""
    return answers.with_length(b"text/javascript; charset=utf-8", SCRIPT)


def notice(said: Notice | None) -> tuple[Headers, bytes]:
    """The same. A refusal is answered in the same words (`answers`)."""
    found: Mapping[str, str] = {} if said is None else said._asdict()
    return answers.with_length(b"application/json", json.dumps(found).encode())
