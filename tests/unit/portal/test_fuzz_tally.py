"""What `make fuzz` counts, and what it says of operations that were never carried out."""

from __future__ import annotations

from tests.fuzz.tally import KEPT, Tally, counts_in, never_reached, report, share, total


def test_the_counts_of_all_processes_are_added(tmp_path, monkeypatch):
    monkeypatch.setenv(KEPT, str(tmp_path))
    tally = Tally()
    for operation, status in (("GET /a/", 200), ("GET /a/", 404), ("POST /b/", 400)):
        tally.add(operation, status)
    tally.keep()
    (tmp_path / "other.json").write_text('{"GET /a/": {"200": 2, "429": 1}}')
    counts = counts_in(tmp_path)
    assert counts["GET /a/"] == {"200": 3, "404": 1, "429": 1}
    assert (total(counts), share(counts, "2")) == (6, 0.5)
    assert never_reached(counts) == {"POST /b/": "400:1"}
    assert report(counts).startswith("6 cases over 2 operations")
