"""`python -m portal.demo`: brings a portal up, and trains a real model through it as a user would.

`story` is what happens, `portal` is the portal it happens in. It uses the SDK and nothing behind it.
"""
