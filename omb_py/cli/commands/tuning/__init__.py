"""The commands that find the knobs of a library and the best setting of them."""
