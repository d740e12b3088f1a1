"""A message in the form of a chat: what Slack, Mattermost and Microsoft Teams take at an incoming webhook. Pure.

What users have written (the name of a job, a reason) is text and nothing else there: it makes no link, mentions no one
and has no markup. Not here: signed JSON, which is the body as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from yardmaster.outgoing.events import TEST, event_words

LONGEST = 300
MOST_ITEMS = 20
"""Of a digest, the newest: a chat takes no longer messages."""
_SUBJECTS = ("job", "model_version", "dataset_version", "budget", "sweep", "schedule")
"""What a body can be about."""
_BREAK = "\u200b"
"""Invisible, and no part of a name or an address: what it stands in is neither."""
_LINKS = re.compile(r"(?i)(:(?=//)|\bwww(?=\.)|\bmailto(?=:))")
_DOTS = re.compile(r"(?<=\w)\.(?=[a-zA-Z]{2})")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&:$])")


def written(form: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON that is sent."""
    match form:
        case "slack":
            return _slack(body)
        case "mattermost":
            return {"text": "\n".join(_lines(body, markdown, "[{words}]({url})"))}
        case "teams":
            return _teams(body)
    return dict(body)


def plain(text: str, longest: int = LONGEST) -> str:
    """The text on one line, without what a chat could read as a link or a mention."""
    kept = "".join(" " if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") else one for one in text)
    line = " ".join(kept.split())
    line = line if len(line) <= longest else line[: longest - 1] + "…"
    return _DOTS.sub(f".{_BREAK}", _LINKS.sub(rf"\1{_BREAK}", line.replace("@", f"@{_BREAK}")))


def slack_text(text: str) -> str:
    """The same for Slack: `<!channel>` and `<https://…>` are written out, `*` makes nothing bold."""
    broken = re.sub(r"([*_~`])", rf"{_BREAK}\1{_BREAK}", plain(text))
    return broken.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown(text: str) -> str:
    """The same for Mattermost, whose Markdown is escaped."""
    return _MARKDOWN.sub(r"\\\1", plain(text))


def _slack(body: Mapping[str, Any]) -> dict[str, Any]:
    text = "\n".join(_lines(body, slack_text, "<{url}|{words}>"))
    return {"text": text, "parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False}


def _teams(body: Mapping[str, Any]) -> dict[str, Any]:
    """An Adaptive Card. A `TextRun` knows no markup, and without `msteams.entities` there are no mentions."""
    first, *others = _lines(body, plain, "")
    blocks = [_run(first, weight="bolder"), *(_run(one) for one in others if one)]
    url = _url(body)
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.2",
        "body": blocks,
        "actions": [{"type": "Action.OpenUrl", "title": "Open in Yardmaster", "url": url}] if url else [],
    }  # fmt: skip
    card = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": content}
    return {"type": "message", "attachments": [card]}


def _run(text: str, **look: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **look}]}


def _lines(body: Mapping[str, Any], escape: Any, link: str) -> list[str]:
    """The message, line by line: a headline, why, and where to read on."""
    if body["event"] == "digest":
        return _digest_lines(body, escape, link)
    said = [headline(body, escape)]
    about = _about(body)
    said += [f"{escape(str(about[one]))}" for one in ("message", "remedy") if about.get(one)]
    if link and (url := _url(body)):
        said.append(link.format(url=url, words="Open in Yardmaster"))
    return said


def headline(body: Mapping[str, Any], escape: Any = plain) -> str:
    """`Job failed: digits in vision (OutOfMemory)`."""
    if body["event"] == TEST:
        return "Test message from Yardmaster"
    if "title" in body:
        return str(escape(str(body["title"])))
    about = _about(body)
    name = about.get("name") or f"{about.get('model') or about.get('dataset') or ''} {about.get('number', '')}".strip()
    words = f"{event_words(body['event'])}: {escape(str(name))}"
    if int(about.get("attempt") or 1) > 1:
        words += f", attempt {int(about['attempt'])},"
    if body.get("namespace"):
        words += f" in {escape(str(body['namespace']['name']))}"
    because = about.get("reason") if body["event"] == "job.failed" else about.get("stage")
    return words + (f" ({escape(str(because))})" if because else "")


def _digest_lines(body: Mapping[str, Any], escape: Any, link: str) -> list[str]:
    said, items = [escape(str(body["title"]))], body["items"][-MOST_ITEMS:]
    for one in items:
        url = _url(one)
        line = headline(one, escape)
        said.append(f"• {line} {link.format(url=url, words='Open')}" if link and url else f"• {line}")
    if left_out := int(body.get("left_out") or 0) + len(body["items"]) - len(items):
        said.append(f"and {left_out} more")
    if link and (url := _url(body)):
        said.append(link.format(url=url, words="Open in Yardmaster"))
    return said


def _about(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((body[one] for one in _SUBJECTS if one in body), {})


def _url(body: Mapping[str, Any]) -> str:
    """The portal's own address: no user writes it."""
    return str(body.get("url") or _about(body).get("url") or "")
