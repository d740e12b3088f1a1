"""`make screenshots`: every page of a portal with everything in it, in light and dark, on a desk and on a phone.

Writes `<folder>/<page>-<look>.png`. The README's pictures are chosen from them by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.browser.addresses import ADDRESSES, Address
from tests.browser.visitor import LOOKS, Look, Visitor, chromium, cookies_of, lacks_chromium, visitor
from tests.browser.world import World, world


def main(folder: Path, names: list[str]) -> int:
    """The exit status: 1 where there is no browser."""
    if lack := lacks_chromium():
        print(f"No pictures: {lack}.", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in ADDRESSES if not names or one.name in names]
    with world() as full, chromium() as browser:
        state = cookies_of(browser, full.url, "ada")
        for look in LOOKS:
            for address in chosen:
                with visitor(browser, full.url, look, storage_state=None if address.is_open else state) as one:
                    one.forgive("status of 404")
                    _take(one, full, address, look, folder)
    print(f"{len(chosen) * len(LOOKS)} pictures in {folder}")
    return 0


def _take(one: Visitor, full: World, address: Address, look: Look, folder: Path) -> None:
    one.goto(address.of(full), status=address.status)
    one.page.wait_for_load_state("networkidle")
    height = one.page.evaluate("document.documentElement.scrollHeight")
    one.page.set_viewport_size({"width": look.width, "height": min(height, 3_000)})
    one.page.wait_for_timeout(400)  # what lies below comes alive when it is seen
    one.page.screenshot(path=folder / f"{address.name}-{look}.png")
    one.page.set_viewport_size({"width": look.width, "height": look.height})


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
