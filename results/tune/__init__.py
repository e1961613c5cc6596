"""Tuning: which setting of a library is fastest for which messages. Pure: nothing here makes a launch."""
