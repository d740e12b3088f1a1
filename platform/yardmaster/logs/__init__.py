"""The log store: numbered lines per task, written by offset, read from any line, searched where they lie.

`records` is the index on disk, `lines` pure work on bytes, `writing` and `reading` one stream, `store` all of them,
`merge` many streams in time order, `search` (with `patterns`) and `levels` what finds lines. Standard library only. Not
here: who may read what, HTTP and WebSockets (the app's matter).
"""
