"""Compile jobs: models that clients send are compiled in processes of their own, under limits.

    compile_in_child -> child_process (started, watched, killed) -> child: compile, and an outcome as JSON

`request` says how a model is to be compiled, as JSON; `processes` measures and ends a process with all that it started.
"""
