"""`onnxla inspect`: what is inside a model or an artifact, down to the memory plan."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from onnxla import CompiledModel
from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Cut, Sizes
from onnxla.cli.compile_summary import report_lines
from onnxla.cli.models import Request, clusters_of, is_artifact, request, require_programs
from onnxla.cli.output import count, print_json, safe, say, signature_line, size, table
from onnxla.cli.outputs import require_distinct
from onnxla.cli.page_file import write_page
from onnxla.cli.roofline_table import show_roofline
from onnxla.errors import InputError
from onnxla.runtime.program import Program


class Part(StrEnum):
    """What to show."""

    SUMMARY = "summary"
    HLO = "hlo"
    OPTIMIZED_HLO = "optimized_hlo"
    DOT = "optimized_hlo_dot"
    KERNELS = "kernels"
    PLAN = "plan"
    MEMORY = "memory"
    CUDA = "cuda"
    RESOURCES = "resources"
    DECISIONS = "decisions"


Show = Annotated[Part, typer.Option("--show", help="The part to print.")]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write everything as one page: graph, code of kernels, memory."),
]
Roofline = Annotated[
    bool, typer.Option("--roofline", help="Print the least time of each step: with --target gpu, on a GPU (--gpu).")
]
GpuName = Annotated[
    str | None, typer.Option("--gpu", metavar="NAME", help="A100, H100, H200, L4 or RTX 4090, for --roofline.")
]
After = Annotated[
    str | None,
    typer.Option("--after", help="Print the HLO after `import`, after `passes`, or after one pass by its name."),
]


def inspect(
    model: arguments.Model,
    *,
    show: Show = Part.SUMMARY,
    after: After = None,
    html: Html = None,
    roofline: Roofline = False,
    gpu: GpuName = None,
    target: arguments.Target = "cpu",
    sizes: Sizes,
    option: arguments.OptionTexts = None,
    cut: Cut,
    as_json: arguments.Json = False,
) -> None:
    """Show signature, HLO at any stage, kernels and memory plan of a model or an artifact."""
    require_distinct(model, html)
    wanted = request(model, Compilation(target=target, sizes=sizes, option=option), cut=cut)
    if roofline:
        show_roofline(wanted, gpu, as_json)
        return
    if gpu is not None:
        raise InputError("--gpu goes with --roofline")
    if after is not None:
        text = hlo_after(after, wanted)
        print_json({"after": after, "hlo": text}) if as_json else print(safe(text), end="")
        return
    compiled = wanted.load()
    require_programs(compiled, wanted)
    if clusters_of(compiled) is not None and show in (Part.SUMMARY, Part.KERNELS) and html is None:
        _show_mixed(compiled, show, as_json)
        return
    if html is not None:
        say(f"{html}  {size(write_page(html, compiled, model.name))}", style="bold")
        if len(compiled.programs) > 1:
            say(f"  it shows one of {len(compiled.programs)}: {', '.join(map(str, compiled.programs[0].inputs))}")
    elif as_json:
        print_json(_document(compiled))
    elif show is Part.SUMMARY:
        _print_summary(compiled)
    elif show is Part.KERNELS:
        _print_kernels(compiled.programs[0])
    elif show is Part.DECISIONS:
        _print_decisions(compiled)
    elif show is Part.RESOURCES:
        print(safe(_resources(compiled)), end="")
    else:
        print(safe(compiled.hlo(show.value)), end="")


def hlo_after(stage: str, wanted: Request) -> str:
    """The HLO as it stands after `import`, `passes` or one pass. Raises InputError for another word."""
    if stage in ("import", "passes"):
        compiled = wanted.load()
        require_programs(compiled, wanted)
        return compiled.hlo("hlo" if stage == "import" else "optimized_hlo")
    if is_artifact(wanted.path):
        raise InputError(f"{wanted.path} holds the HLO after import and after passes; for {stage} give the model")
    from onnxla.hlo.printer import print_module
    from onnxla.passes.pipelines import optimize, pipeline_for

    names = list(dict.fromkeys(p.name for p in pipeline_for(wanted.target, wanted.options).passes))
    if stage not in names:
        raise InputError(f"--after {stage}: there are import, passes, {', '.join(names)}")
    if wanted.path.suffix == ".hlo":
        raise InputError(f"{wanted.path} is HLO text: onnxla opt runs passes on it")
    module = wanted.source().load(wanted.shapes, wanted.single_dims, {}).module
    optimize(module, wanted.target, replace(wanted.options, stop_after=stage))
    return print_module(module)


def _show_mixed(compiled: CompiledModel, show: Part, as_json: bool) -> None:
    """A model with parts in onnxruntime: what runs where, and the kernels of what is compiled."""
    report = clusters_of(compiled)
    assert report is not None
    if as_json:
        ends = {"inputs": compiled.get_inputs(), "outputs": compiled.get_outputs()}
        print_json({"about": compiled.about, **ends, "clusters": report.clusters})
        return
    if show is Part.KERNELS:
        for program in compiled.programs:
            _print_kernels(program)
        return
    say(f"inputs   {signature_line(compiled.get_inputs())}")
    say(f"outputs  {signature_line(compiled.get_outputs())}")
    for key, value in compiled.about.items():
        say(f"{key:<8} {_about_line(value)}")
    say(report)


def _document(compiled: CompiledModel) -> dict[str, object]:
    program = compiled.programs[0]
    return {
        "about": compiled.about,
        "inputs": compiled.get_inputs(),
        "outputs": compiled.get_outputs(),
        "programs": len(compiled.programs),
        "memory": compiled.memory(),
        "instructions": program.instruction_count,
        "kernels": program.kernel_count,
        "steps": program.steps,
        "triple": program.triple,
        "cpu": program.cpu,
        "features": program.features,
        "report": compiled.report,
    }


def _print_summary(compiled: CompiledModel) -> None:
    program = compiled.programs[0]
    memory = compiled.memory()
    say(f"inputs   {signature_line(compiled.get_inputs())}")
    say(f"outputs  {signature_line(compiled.get_outputs())}")
    if compiled.state:
        say(f"state    {', '.join(map(str, compiled.state.signatures()))}")
    for key, value in compiled.about.items():
        if key != "target":  # the line on the machine says it in short
            say(f"{key:<8} {_about_line(value)}")
    say(f"machine  {program.triple}, {program.cpu}")
    say(f"programs {len(compiled.programs)}{_specialisations(compiled)}")
    if compiled.report is not None:
        for line in report_lines(compiled.report):
            say(line)
    else:
        say(
            f"work     {count(program.instruction_count, 'instruction')} -> {count(program.kernel_count, 'kernel')}, "
            f"{count(len(program.steps), 'step')}"
        )
        say(
            f"memory   arena {size(memory.arena)} (all intermediates: {size(memory.intermediates)}), "
            f"weights {size(memory.weights)}"
        )
    say(
        "more with --html FILE, --show hlo, optimized_hlo, kernels, plan, memory, resources, decisions, or "
        "--after PASS",
        style="dim",
    )


def _resources(compiled: CompiledModel) -> str:
    """What each kernel needs: instructions and stack, or registers, shared memory and spills."""
    from onnxla.inside.inside import inside_of
    from onnxla.inside.kernel_code import resource_report

    return resource_report(inside_of(compiled.programs[0], compiled.about).code)


def _print_decisions(compiled: CompiledModel) -> None:
    """Where there were several ways to compute a kernel: each with its predicted and measured time."""
    from onnxla.codegen.choices import read_decisions

    decisions = read_decisions(compiled.hlo("decisions")).values()
    rows = []
    for number, decision in enumerate(decisions):
        for k, candidate in enumerate(decision.candidates):
            measured = "" if candidate.measured is None else f"{candidate.measured * 1e6:.1f}"
            mark = "taken" if candidate.name == decision.chosen else ""
            about = "" if k else decision.what
            rows.append((number, candidate.name, f"{candidate.predicted * 1e6:.1f}", measured, mark, about))
    table((">choice", "way", ">predicted us", ">measured us", "", "kernel"), rows)
    say("predicted for a stated machine: these times compare ways, and say nothing of this one", style="dim")


def _about_line(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={_about_line(item)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def _specialisations(compiled: CompiledModel) -> str:
    if len(compiled.programs) == 1:
        return ""
    return ": " + "; ".join(", ".join(map(str, program.inputs)) for program in compiled.programs)


def _print_kernels(program: Program) -> None:
    rows = [
        (number, step.op, step.name, size(step.bytes), f"{step.flops / 1e6:.2f}" if step.flops else "", step.source)
        for number, step in enumerate(program.steps)
    ]
    table((">step", "op", "kernel", ">traffic", ">Mflop", "node of the model"), rows)
