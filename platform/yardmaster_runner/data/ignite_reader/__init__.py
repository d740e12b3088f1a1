"""Apache Ignite as a source of a script's data, over its thin client protocol.

In the order of the data: `access` and `connection` (how we come in), `cluster` (which node), `scan` and `sql` (pages of
rows), `rows` (where they lie in a page), `decoding` by a `layout` (what they become), `columns`, `source` (all of it
for one cache), `dataset` (what a script calls). Needs NumPy, and TensorFlow in `dataset` alone,
when they are asked for. `survey` and `shown_values` say what a cluster has, with the standard library alone.
"""
