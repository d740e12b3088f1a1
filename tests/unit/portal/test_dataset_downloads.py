"""`YARDMASTER_DATASET_DOWNLOADS`."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.dataset_downloads import DatasetDownloads, dataset_downloads


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("", DatasetDownloads(True)),
        ("on", DatasetDownloads(True)),
        ("OFF", DatasetDownloads(False)),
        ("http://mirror.inside:8080/keras/", DatasetDownloads(True, "http://mirror.inside:8080/keras")),
    ],
)
def test_it_is_on_off_or_a_mirror(monkeypatch: pytest.MonkeyPatch, value: str, found: DatasetDownloads) -> None:
    monkeypatch.setenv("YARDMASTER_DATASET_DOWNLOADS", value)
    assert dataset_downloads() == found


@pytest.mark.parametrize("value", ["maybe", "ftp://host/x", "https://", "https://me:pass@host/x", "https://host/?x=1"])
def test_anything_else_is_refused_without_repeating_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("YARDMASTER_DATASET_DOWNLOADS", value)
    with pytest.raises(ImproperlyConfigured, match="mirror") as raised:
        dataset_downloads()
    assert "pass" not in str(raised.value)
