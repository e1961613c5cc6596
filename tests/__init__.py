"""Tests, and what they share: a package, so that an installed one of the same name does not stand before it."""
