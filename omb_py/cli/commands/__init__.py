"""The commands of ``omb-py``, one module each."""
