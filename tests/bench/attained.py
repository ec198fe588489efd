"""What kernels reach beside what the machine could do: `python -m tests.bench.attained PROFILES HISTORY`.

PROFILES is a folder of what `onnxla profile MODEL --threads 1 --json` printed, `MODEL.json` each; HISTORY is the file
of this CPU in `tests/bench/figures`, of which the last times on one thread count. Prints Markdown: all models beside
their goals, then, of each that misses its goal, the kernels in which its time goes. `--into docs/speed.md` puts it
between the marks of that page.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxla.cli.profile_command import PREDICTED_WITHIN, kernel_name
from tests.bench.history import read

GOALS = {
    "resnet50": 1.4,
    "vgg16": 2.0,
    "unet": 1.7,
    "densenet121": 1.4,
    "convnext_tiny": 1.35,
    "mobilenet_v3_large": 1.6,
    "efficientnet_b0": 1.6,
    "vit_b_16": 1.2,
    "bert_base": 1.25,
    "minilm": 1.35,
    "gpt2": 1.2,
    "lstm": 1.3,
    "mlp": 1.3,
    "sum_fma": 2.0,
    "softmax_ln": 4.0,
    "resnet50_int8": 1.1,
}
"""onnxruntime's time over ours, that we set out to reach."""
BEGIN, END = "<!-- begin: tests.bench.attained -->", "<!-- end: tests.bench.attained -->"
_ROWS, _SHARE = 8, 0.9
"""Most kernels of a model that are listed, and the part of its time after which the list ends."""


@dataclass
class Group:
    """Steps that run the same code."""

    name: str
    node: str = ""
    """The node of the model that the first of them computes."""
    count: int = 0
    seconds: float = 0.0
    floor: float = 0.0
    predicted: float = 0.0
    flops: int = 0
    bytes: int = 0

    @property
    def rates(self) -> tuple[str, str]:
        """Achieved and attainable, in GFLOP/s or, where nothing is multiplied, GB/s."""
        work, unit = (self.flops, "GFLOP/s") if self.flops else (self.bytes, "GB/s")
        achieved, attainable = (f"{work / s / 1e9:.1f} {unit}" if s else "" for s in (self.seconds, self.floor))
        return achieved, attainable


def groups(profile: Mapping[str, Any]) -> list[Group]:
    """The kernels of a run by their code, the dearest first."""
    found: dict[str, Group] = {}
    for step in profile["steps"]:
        if step["floor_seconds"] is None:
            continue
        group = found.setdefault(step["kernel"] or "copy", Group(kernel_name(step["kernel"]) or "copy"))
        group.node = group.node or step["source"].rsplit(" (", 1)[0]
        group.count += 1
        group.seconds += step["seconds"]
        group.floor += step["floor_seconds"]
        group.predicted += step["predicted_seconds"]
        group.flops += step["flops"] * step["rounds"]
        group.bytes += step["bytes"] * step["rounds"]
    return sorted(found.values(), key=lambda g: -g.seconds)


def overview(profiles: Mapping[str, Any], ratios: Mapping[str, float]) -> Iterator[str]:
    """A row for each model."""
    yield "| model | goal | reached | run | floor | run / floor | predicted within |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    near = every = 0.0
    for model, goal in GOALS.items():
        profile = profiles[model]
        floor = sum(s["floor_seconds"] or 0.0 for s in profile["steps"])
        good, all_of = predicted_well(profile)
        near, every = near + good, every + all_of
        mark = "" if ratios[model] >= goal else " (short)"
        run = profile["seconds"]
        yield (
            f"| {model} | {goal:.2f} | {ratios[model]:.2f}{mark} | {run * 1e3:.4g} ms | {floor * 1e3:.3g} ms "
            f"| {run / floor:.2f} | {good / all_of:.0%} |"
        )
    yield ""
    yield (
        f"The last column is the part of the time of kernels over 1 % of a run for which the cost model is within "
        f"{PREDICTED_WITHIN:g} times; over all models it is {near / every:.0%}."
    )


def predicted_well(profile: Mapping[str, Any]) -> tuple[float, float]:
    """Seconds of the kernels over a hundredth of the run that were predicted well, and of all of them."""
    heavy = [s for s in profile["steps"] if s["floor_seconds"] and s["seconds"] > 0.01 * profile["seconds"]]
    near = [s for s in heavy if 1 / PREDICTED_WITHIN <= s["predicted_seconds"] / s["seconds"] <= PREDICTED_WITHIN]
    return sum(s["seconds"] for s in near), sum(s["seconds"] for s in heavy)


def kernels(model: str, profile: Mapping[str, Any], ratio: float) -> Iterator[str]:
    """The kernels of a model that take most time."""
    yield f"### {model}: {ratio:.2f} of {GOALS[model]:.2f}"
    yield ""
    yield "| kernel | first node | times | of the run | achieved | attainable | part |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    found, shown, done = groups(profile), 0, 0.0
    total = profile["seconds"]
    for group in found:
        if shown == _ROWS or done > _SHARE * total:
            break
        achieved, attainable = group.rates
        yield (
            f"| {group.name} | {group.node} | {group.count} | {group.seconds / total:.1%} | {achieved} | {attainable} "
            f"| {group.floor / group.seconds:.0%} |"
        )
        shown, done = shown + 1, done + group.seconds
    rest = found[shown:]
    if rest:
        count, seconds, floor = (sum(getattr(g, name) for g in rest) for name in ("count", "seconds", "floor"))
        yield f"| {len(rest)} more | | {count} | {seconds / total:.1%} | | | {floor / seconds:.0%} |"
    yield ""


def page(profiles: Mapping[str, Any], ratios: Mapping[str, float]) -> Sequence[str]:
    """All of it."""
    machine = next(iter(profiles.values()))["machine"]
    memories = ", ".join(f"{name} {speed:.0f} GB/s" for name, _, speed in machine["memories"])
    lines = [f"Measured limits of one core here: {machine['gigaflops']:.0f} GFLOP/s in fp32, {memories}.", ""]
    lines += overview(profiles, ratios)
    short = sorted((m for m in GOALS if ratios[m] < GOALS[m]), key=lambda m: ratios[m] / GOALS[m])
    lines += ["", "## Kernel by kernel, where a goal is missed", ""]
    for model in short:
        lines += kernels(model, profiles[model], ratios[model])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profiles", type=Path)
    parser.add_argument("history", type=Path)
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    entry = read(arguments.history).last("speed", 1)
    if entry is None:
        raise SystemExit(f"{arguments.history} has no times on one thread")
    ratios = {model: row["ratio"]["onnxruntime"] for model, row in entry.models.items() if "ratio" in row}
    profiles = {path.stem: json.loads(path.read_text()) for path in sorted(arguments.profiles.glob("*.json"))}
    text = "\n".join(page(profiles, ratios))
    if arguments.into is None:
        print(text)
        return
    before, rest = arguments.into.read_text().split(BEGIN)
    behind = rest.split(END)[1]
    arguments.into.write_text(f"{before}{BEGIN}\n\n{text.rstrip()}\n\n{END}{behind}")


if __name__ == "__main__":
    main()
