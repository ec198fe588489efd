"""`onnxla inspect --roofline`: bytes, operations and the least time of each step, without running any.

For a GPU from its published peaks, of a plan that needs neither a GPU nor its compiler; for this machine from what was
measured of it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxla.cli.models import Request, is_artifact, require_programs
from onnxla.cli.output import duration, print_json, say, size, table
from onnxla.errors import InputError
from onnxla.runtime.program import GPU_TRIPLE

if TYPE_CHECKING:
    from onnxla.codegen.plan import Plan
    from onnxla.roofline.gpus import Floor


def show_roofline(wanted: Request, gpu: str | None, as_json: bool) -> None:
    """Print the table. Raises InputError for a GPU that is not known, or a model that is not for one."""
    if wanted.target == "gpu":
        _show_gpu(wanted, gpu or "A100", as_json)
    elif gpu is not None:
        raise InputError(f"--gpu {gpu} goes with --target gpu")
    else:
        _show_machine(wanted, as_json)


def _show_gpu(wanted: Request, name: str, as_json: bool) -> None:
    from onnxla.roofline.gpus import LAUNCH_SECONDS, floors, gpu_named, total_seconds

    gpu = gpu_named(name)
    rows = list(floors(_gpu_plan(wanted), gpu))
    total = total_seconds(rows)
    if as_json:
        steps = [{**vars(row), "seconds": row.seconds, "bound": row.bound} for row in rows]
        print_json({"gpu": gpu, "seconds": total, "steps": steps})
        return
    table((">step", "kernel", ">bytes", ">Mflop", ">floor us", "bound", "node of the model"), _lines(rows))
    say(f"floor {duration(total)} on one {gpu.name}, each loop's body once", style="bold")
    say(
        f"{gpu.name}, published: {gpu.gigabytes_per_second:.0f} GB/s, fp32 {gpu.fp32:g}, tf32 {gpu.tf32:g}, fp16 "
        f"{gpu.fp16:g} TFLOP/s; a kernel is taken to need {duration(LAUNCH_SECONDS)} at least",
        style="dim",
    )


def _lines(rows: "Sequence[Floor]") -> list[tuple[object, ...]]:
    return [
        (
            number,
            row.kernel,
            size(row.bytes),
            f"{row.flops / 1e6:.2f}" if row.flops else "",
            f"{row.seconds * 1e6:.1f}",
            row.bound,
            row.source,
        )
        for number, row in enumerate(rows)
    ]


def _gpu_plan(wanted: Request) -> "Plan":
    """The plan of a model for GPUs, made without NVRTC."""
    if is_artifact(wanted.path):
        from onnxla.inside.inside import inside_of

        compiled = wanted.load()
        return inside_of(compiled.programs[0], compiled.about).plan
    from onnxla.codegen.gpu.schedule import lower
    from onnxla.codegen.gpu.target import GpuTarget
    from onnxla.codegen.planner import make_plan
    from onnxla.codegen.weights import WeightsImage
    from onnxla.passes.pipelines import optimize

    options = wanted.options
    target = GpuTarget.named(options.target_gpu, tf32=options.precision == "tf32", keep_f32=options.keep_f32)
    module = wanted.source().load(wanted.shapes, wanted.single_dims, {}).module
    optimize(module, "gpu", options)
    return make_plan(module, lambda i: lower(i, target.of(i)), WeightsImage())


def _show_machine(wanted: Request, as_json: bool) -> None:
    from onnxla.roofline.stored import machine_limits

    compiled = wanted.load()
    require_programs(compiled, wanted)
    program = compiled.programs[0]
    if program.triple == GPU_TRIPLE:
        raise InputError(f"{wanted.path} is for a GPU: add --target gpu")
    limits = machine_limits(compiled.num_threads)
    steps = [s for s in program.steps if s.kernel or s.op == "copy"]
    total = sum(map(limits.seconds, steps))
    if as_json:
        rows = [{**vars(s), "floor_seconds": limits.seconds(s), "bound": limits.bound(s)} for s in steps]
        print_json({"machine": limits.json(), "seconds": total, "steps": rows})
        return
    table(
        (">step", "kernel", ">bytes", ">Mflop", ">floor us", "bound", "node of the model"),
        [
            (
                number,
                s.name,
                size(s.bytes),
                f"{s.flops / 1e6:.2f}" if s.flops else "",
                f"{limits.seconds(s) * 1e6:.1f}",
                limits.bound(s),
                s.source,
            )
            for number, s in enumerate(steps)
        ],
    )
    say(f"floor {duration(total)} on this machine with {limits.threads} threads, each loop's body once", style="bold")
