"""The portal that the notebooks talk with."""

from __future__ import annotations

from tests.real.portal import whole_portal

__all__ = ["whole_portal"]
