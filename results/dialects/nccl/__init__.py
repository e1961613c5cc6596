"""The text and JSON of nccl-tests and rccl-tests, printed and read."""
