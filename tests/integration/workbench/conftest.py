"""Fixtures of the workbench's tests."""

from tests.real.portal import light_portal

__all__ = ["light_portal"]
