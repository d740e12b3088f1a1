"""The launch form as a browser would send it: what stands in the fields of a page."""

from __future__ import annotations

from html.parser import HTMLParser


def form_of(page: str, form_id: str = "launch") -> dict[str, str]:
    """Names and values of the form's fields, without its buttons and the job file beside it."""
    reader = _Reader(form_id)
    reader.feed(page)
    return {name: value for name, value in reader.found.items() if name not in ("csrfmiddlewaretoken", "yaml")}


class _Reader(HTMLParser):
    def __init__(self, form_id: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._form_id, self._is_within = form_id, False
        self._text: str | None = None
        """The name of the text area that is open."""
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_within = given.get("id") == self._form_id
        name = given.get("name", "")
        if not self._is_within or "disabled" in given:
            return
        if tag == "option" and self._select and ("selected" in given or self._select not in self.found):
            self.found[self._select] = given.get("value", "")  # the first one, where none is selected
        elif tag == "select":
            self._select = name
        elif tag == "textarea" and name:
            self._text, self.found[name] = name, ""
        elif tag == "input" and name and (given.get("type") not in ("radio", "checkbox") or "checked" in given):
            self.found[name] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_within = False
        elif tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._text = None

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self.found[self._text] += data.removeprefix("\n") if not self.found[self._text] else data
