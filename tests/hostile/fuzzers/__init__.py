"""Fuzzers: each file is a target, which takes any bytes and may end in a typed error only.

By hand, for hours, guided by coverage (needs `pip install atheris`; the options are libFuzzer's):

    python -m tests.hostile.fuzzers.importer -max_total_time=3600

`--keep-going FOLDER` notes each different finding there and carries on. `test_fuzzers.py` runs a few hundred mutants of
each target's seeds without atheris.
"""
