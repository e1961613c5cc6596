"""Python bindings: programs of steps as flat Python loops."""
