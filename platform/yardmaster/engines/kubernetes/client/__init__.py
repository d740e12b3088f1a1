"""How the portal speaks to a cluster: the one package that imports the `kubernetes` library."""
