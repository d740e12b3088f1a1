"""`python -m portal.up`: every process of the portal on one machine, with nothing installed beside Python.

`processes` says which there are, `home` prepares the folder they live in, `keeper` keeps them running. None of
Django is imported: this process stays small and starts at once. Not here: jobs; they have supervisors of their own
and continue when the portal stops.
"""
