"""The measuring engine: programs of steps, their compiled interpreter, sampling and validation."""
