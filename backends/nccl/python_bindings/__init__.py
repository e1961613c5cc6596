"""The Python bindings of NCCL: cupy, nccl4py and torch, as flat Python loops."""
