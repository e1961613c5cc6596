"""What exists for tests alone: faults that ``--inject`` plants, and the device ``sim``. Both are left out of help."""
