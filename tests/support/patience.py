"""How long a test waits for what has to come."""

PATIENCE_S = 500.0
"""Only a test that hangs waits so long: ranks that share their cores with others take many times their usual time."""
