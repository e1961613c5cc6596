"""Parts that only tests use: faults that ``--inject`` plants, and the device ``sim``. Both are left out of help."""
