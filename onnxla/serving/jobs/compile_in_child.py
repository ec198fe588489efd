"""Compile a model in a process of its own, within limits: whatever it is and asks for, this process goes on as before.

    await compile_in_child(Path("model.onnx"), {"dims": {"batch": 8}}, ChildLimits(), progress, output=Path("m.onnxla"))

The child and all that it starts are killed when they are over a limit, when the caller is cancelled, and when this
process ends, in whatever way.
"""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from onnxla.config import ChildLimits
from onnxla.serving.jobs.child_process import ArchiveLimits, ChildProcess, Programs
from onnxla.serving.jobs.outcome import Outcome
from onnxla.serving.jobs.request import CompileRequest
from onnxla.watch import Progress


async def compile_in_child(
    source: Path,
    options: Mapping[str, Any] | CompileRequest,
    limits: ChildLimits | None = None,
    progress: Progress | None = None,
    *,
    output: Path,
    **more: Any,
) -> Path:
    """Compile the model in a file or a SavedModel's folder to the artifact `output`, which is returned.

    `options` are keyword arguments of `onnxla.compile` as `CompileRequest` has them. `progress` is called on this loop.
    `more` as for `run_in_child`.

    Raises what `onnxla.compile` raises; ResourceLimitError beyond `limits`; InternalError for a child that crashed.
    """
    outcome = await run_in_child(source, options, limits, progress, output=output, **more)
    if outcome.error is not None:
        raise outcome.error
    return output


async def run_in_child(
    source: Path,
    options: Mapping[str, Any] | CompileRequest,
    limits: ChildLimits | None = None,
    progress: Progress | None = None,
    *,
    output: Path,
    knobs: Mapping[str, Any] | None = None,
    archive: ArchiveLimits | None = None,
    programs: Programs | None = None,
) -> Outcome:
    """As `compile_in_child`, with all that is known of the compile; a model that cannot be compiled raises nothing.

    `knobs` are further ones of `CompileOptions`, such as `cache_dir`. With `archive`, the source may be an archive too.
    `programs` is where single programs are looked up and kept, in place of a cache's folder.

    Raises InputError for options that are none, ResourceLimitError, InternalError.
    """
    wanted = options if isinstance(options, CompileRequest) else CompileRequest(**options)
    loop = asyncio.get_running_loop()

    def tell(stage: str, part: float) -> None:
        if progress is not None:
            loop.call_soon_threadsafe(progress, stage, part)

    child = ChildProcess(
        source,
        wanted,
        limits or ChildLimits.from_environment(),
        output,
        tell,
        knobs=knobs or {},
        archive=archive,
        programs=programs,
    )
    done: asyncio.Future[Outcome] = loop.create_future()

    def finish(outcome: Outcome | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        elif outcome is not None:
            done.set_result(outcome)

    def work() -> None:
        outcome, error = None, None
        try:
            outcome = child.run()
        except BaseException as found:
            error = found
        with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            loop.call_soon_threadsafe(finish, outcome, error)

    threading.Thread(target=work, name="onnxla compile", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        child.cancel()
        await asyncio.wait([done])
        _ = done.exception()  # nobody asks for it any more
        raise
