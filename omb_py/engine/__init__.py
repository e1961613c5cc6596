"""The measuring engine: programs of steps, their machine code, sampling and validation."""
