"""``omb-py accept``: a suite is measured until its criteria are decided."""
