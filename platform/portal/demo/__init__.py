"""`python -m portal.demo`: brings a portal up, and trains real models through it as a user would.

`digits` and `reviews` are what happens, `stage` is how it is shown, `portal` is the portal it happens in. It uses the
SDK and nothing behind it.
"""
