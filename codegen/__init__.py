"""HLO to machine code."""
