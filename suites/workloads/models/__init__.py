"""Models as the tensors that are communicated: shape, number of elements, and the unit that FSDP wraps."""
