"""HLO to HLO, one idea a file; `pipelines.py` is the readable list."""
