"""The starter notebook of an `in_graph` job: it connects to the job's servers and trains one line on all of them. Pure.

The code names only addresses that the engine gave; what a user wrote stands in prose alone, where it means nothing.
Not here: which addresses there are (the engine), and who may have the notebook (the portal).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from yardmaster.job.spec import Role

_FORMAT = (4, 5)


def starter_notebook(
    name: str, target: str, servers: Mapping[Role, Sequence[str]], *, reach: str = "", data_dir: str = ""
) -> str:
    """The notebook as the text of an .ipynb file. `name` is the job's, `target` the `grpc://` address of the server to
    connect to, `data_dir` where the servers find the job's inputs, if there are any."""
    cells = [
        _prose("intro", f"# {_plain(name)}\n\n{_INTRO}\n\nThe addresses can be reached: {_plain(reach)}"),
        _code("connect", _connect(target, servers, data_dir)),
        _prose("devices-said", "The processors that the servers offer. Any operation can be placed on any of them."),
        _code("devices", _DEVICES),
        _prose("graph-said", _GRAPH_SAID),
        _code("graph", _GRAPH),
        _prose("run-said", _RUN_SAID),
        _code("run", _RUN),
    ]
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": _FORMAT[0],
        "nbformat_minor": _FORMAT[1],
    }
    return json.dumps(notebook, indent=1) + "\n"


def _prose(cell: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": cell, "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(cell: str, text: str) -> dict[str, Any]:
    lines = text.strip().splitlines(keepends=True)
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": cell,
        "metadata": {},
        "outputs": [],
        "source": lines,
    }


def _plain(text: str) -> str:
    """A text that is neither Markdown nor HTML nor mathematics: what could be is written as a character's number."""
    return "".join(sign if sign.isalnum() or sign in " .," else f"&#{ord(sign)};" for sign in text)


def _connect(target: str, servers: Mapping[Role, Sequence[str]], data_dir: str) -> str:
    counts = {role.value: len(addresses) for role, addresses in servers.items()}
    lines = [
        "import tensorflow.compat.v1 as tf",
        "",
        f"TARGET = {target!r}",
        f"TASKS = {counts!r}  # how many servers there are of each role",
    ]
    if data_dir:
        lines += [f"DATA_DIR = {data_dir!r}  # where every server reads the job's data"]
    return "\n".join(lines)


_INTRO = """The servers of this job are idle TensorFlow processes. This notebook builds one graph, says which of
them runs which part, and drives them all from here. Stop the job when you are done: until then they keep their share of
the quota."""

_DEVICES = """
with tf.Session(TARGET) as session:
    for device in session.list_devices():
        if device.device_type in ("CPU", "GPU"):
            print(device.name)
"""

_GRAPH_SAID = """One model, in the graph once for its variables and once per worker for its work: the variables live on
the parameter servers, each worker draws a batch of its own and works out gradients, and their mean changes the
variables."""

_GRAPH = """
graph = tf.Graph()
with graph.as_default():
    variables = []
    for number, name in enumerate(["slope", "offset"]):
        with tf.device("/job:ps/task:%d" % (number % TASKS["ps"])):
            variables.append(tf.get_variable(name, shape=[], initializer=tf.zeros_initializer()))
    slope, offset = variables

    gradients = []
    for number in range(TASKS["worker"]):
        with tf.device("/job:worker/task:%d" % number):
            x = tf.random_uniform([256])
            error = slope * x + offset - (3.0 * x + 2.0)
            loss = tf.reduce_mean(tf.square(error))
            gradients.append(tf.gradients(loss, variables))

    means = [tf.add_n(list(each)) / len(gradients) for each in zip(*gradients)]
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    train = optimizer.apply_gradients(zip(means, variables))
    initialize = tf.global_variables_initializer()
"""

_RUN_SAID = """Variables stay on the servers after the session has ended, until they are initialized again. When a
server was lost and has come back, its variables are gone: run this cell again, or restore a checkpoint of your own."""

_RUN = """
with tf.Session(TARGET, graph=graph) as session:
    session.run(initialize)
    for step in range(300):
        session.run(train)
    found = session.run(variables)
    print("slope %.2f (it is 3), offset %.2f (it is 2)" % tuple(found))
"""
