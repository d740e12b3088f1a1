"""What runs inside a task: stage in, launch the script, ship its output, report, keep what it made.

Standard library only, Python 3.8 or newer, so that it works in an image that knows nothing of Yardmaster; TensorFlow is
never imported. Start it with `python -m yardmaster_runner` (or the one-file archive that `pack` makes). The contract
with the portal is docs/protocols.md, sections 4 and 5; the contract with the script is flags, variables and folders.
"""
