"""A stand-in for nccl4py where there is no GPU."""
