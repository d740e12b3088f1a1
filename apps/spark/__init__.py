"""Spark clusters that were there before the jobs of the portal, registered by administrators: where their masters are,
who may use them, and how much of them a job may take."""
