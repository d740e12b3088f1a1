"""Runs of jobs on one machine: files say what was ordered and what has become of it, and one detached supervisor per
run starts and ends its tasks. It needs Linux, Python and nothing that is installed.

`runs` has the verbs. Who uses it: the local engine, and the agent of the engine `hosts` on each of its machines.
"""
