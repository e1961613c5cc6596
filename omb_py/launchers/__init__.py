"""What starts ranks: one file for each launcher. A new one is a new file and an entry in :mod:`.registry`."""

RANK_VARIABLE = "OMB_PY_RANK_FROM"
"""Names the two variables in which the launcher gives rank and size, so that ranks need not know all launchers."""
