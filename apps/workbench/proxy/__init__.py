"""The proxy between browsers and the programs of sessions, as ASGI. It knows no table: who may pass is asked
(`contract`).

`application` decides, `origins` says which address is whose, `http_passing` and `socket_passing` pass what comes, over
connections of `gate_connection`.
"""
