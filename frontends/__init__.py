"""Model files to HLO."""
