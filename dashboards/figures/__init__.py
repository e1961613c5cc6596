"""Figures: tables in, views out."""
