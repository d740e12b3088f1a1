"""Engines run jobs. `base` has the contract, `registry` finds one by name; each engine is one folder."""
