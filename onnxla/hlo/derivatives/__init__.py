"""Reverse-mode derivatives of HLO: `reverse.py` walks, the other files have a rule for each operation."""
