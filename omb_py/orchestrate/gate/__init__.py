"""``omb-py gate``: a file of commands that a change of software must not make slower."""
