"""What other apps are asked about uploads and what was made of them."""

from __future__ import annotations

from django.dispatch import Signal

versions_deleting = Signal()
"""Versions of datasets or code are about to be deleted. A receiver gets `version_ids` and returns the set of those that
it still needs: then none is deleted."""
