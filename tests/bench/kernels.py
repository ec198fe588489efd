"""Our kernels beside onnxruntime's, region by region: `python -m tests.bench.kernels MODEL [--threads N]`.

Both runtimes profile the same runs in turns. Each kernel of either covers some nodes of the model; a region is the
smallest group of ours and of theirs that cover the same nodes, so fusions with different borders are compared whole.
The regions that lose most time come first. onnxruntime's clock counts whole microseconds.
"""

import argparse
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnxla.cli.argument_groups import Compilation, Sizes
from onnxla.cli.feeds import feeds_for, read_inputs
from onnxla.cli.models import request
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Step
from onnxla.runtime.tensors import Array


@dataclass
class Kernel:
    """A kernel of either runtime, its mean time, and the nodes of the model that it computes."""

    name: str
    seconds: float
    nodes: set[str]
    flops: int = 0
    bytes: int = 0


@dataclass
class Region:
    """Kernels of both that cover the same nodes."""

    ours: list[Kernel] = field(default_factory=list)
    theirs: list[Kernel] = field(default_factory=list)

    @property
    def lost(self) -> float:
        """Seconds that onnxruntime is ahead."""
        return sum(k.seconds for k in self.ours) - sum(k.seconds for k in self.theirs)


def with_names(path: Path, folder: Path) -> Path:
    """The model, or a copy in `folder` whose nodes all have names: onnxruntime's profile knows nothing else of them."""
    model = onnx.load(path, load_external_data=False)
    if all(node.name for node in model.graph.node):
        return path
    for node in model.graph.node:
        node.name = node.name or f"{node.op_type} {node.output[0]}"
    onnx.save(model, folder / "named.onnx")
    return folder / "named.onnx"


class Graph:
    """The model's nodes: who makes which value."""

    def __init__(self, path: Path) -> None:
        graph = onnx.load(path, load_external_data=False).graph
        self.nodes = list(graph.node)
        self.maker = {output: node for node in self.nodes for output in node.output if output}
        self.names = {id(node): node.name for node in self.nodes}
        self.readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in self.nodes:
            for value in node.input:
                self.readers[value].append(node)

    def ends(self, node: onnx.NodeProto) -> list[str]:
        """The values of the model that a node of onnxruntime's gives; a blocked convolution keeps them in its name."""
        given = [value for value in (*node.output, node.name.removesuffix("_nchwc")) if value in self.maker]
        fused = next((a.s.decode() for a in node.attribute if a.name == "activation"), "")
        return [next((r.output[0] for r in self.readers[value] if r.op_type == fused), value) for value in given]

    def behind(self, ends: Sequence[str], borders: set[str]) -> set[str]:
        """Nodes that compute the values `ends`, back to the values in `borders`."""
        found: set[str] = set()
        stack = list(ends)
        while stack:
            node = self.maker.get(stack.pop())
            if node is not None and self.names[id(node)] not in found:
                found.add(self.names[id(node)])
                stack += [value for value in node.input if value not in borders]
        return found

    def complete(self, kernels: Sequence["Kernel"]) -> list[tuple["Kernel", "Kernel"]]:
        """Nodes that no kernel names were rewritten into what reads them: give them to its kernel.

        Pairs of kernels that are of one make: such a node, split, is in both.
        """
        owner = {name: kernel for kernel in kernels for name in kernel.nodes}
        pairs = []
        for node in reversed(self.nodes):
            name = self.names[id(node)]
            readers = [self.names[id(r)] for value in node.output for r in self.readers[value]]
            found = [owner[r] for r in readers if r in owner]
            if name not in owner and found:
                owner[name] = found[0]
                owner[name].nodes.add(name)
                pairs += [(found[0], other) for other in found[1:]]
        return pairs


def fast_mean(times: Array) -> Array:
    """The mean of the fastest quarter along the first axis: what the code takes where nobody else has the core."""
    mean: Array = np.sort(times, axis=0)[: -(-len(times) // 4)].mean(axis=0)
    return mean


def our_kernels(model: CompiledModel, steps: Sequence[Step], seconds: Array) -> list[Kernel]:
    """A kernel for each instruction; its nodes are those of the instructions fused in it."""
    inside = nodes_inside(model.hlo("optimized_hlo"))
    kernels: dict[str, Kernel] = {}
    for step, time in zip(steps, seconds, strict=True):
        source = step.source.rsplit(" (", 1)[0]
        nodes = inside.get((_base(step.name), source), set()) | {source}
        kernel = kernels.setdefault(step.name, Kernel(step.name, 0.0, set(nodes)))
        kernel.seconds += time
        kernel.flops += step.flops
        kernel.bytes += step.bytes
    return list(kernels.values())


def nodes_inside(text: str) -> dict[tuple[str, str], set[str]]:
    """The nodes in each instruction of the entry, fused ones included, by its name without number and its own node.

    The plan and the text number instructions of one name in different orders.
    """
    fused: dict[str, set[str]] = defaultdict(set)
    inside: dict[tuple[str, str], set[str]] = defaultdict(set)
    within = ""
    for line in text.splitlines():
        if line.endswith("{") and line.startswith(("%", "ENTRY")):
            within = line.split()[0]
        name = re.match(r"\s+(?:ROOT )?%(\S+) = ", line)
        node = re.search(r'op_name="([^"]*)"', line)
        if not name or not node or " parameter(" in line or " constant(" in line:
            continue
        called = re.search(r"calls=(%\S+?),", line)
        nodes = {node[1]} | (fused[called[1]] if called else set())
        if within == "ENTRY":
            inside[_base(name[1]), node[1]] |= nodes
        else:
            fused[within] |= nodes
    return inside


def _base(name: str) -> str:
    return re.sub(r"\.\d+$", "", name)


def their_kernels(graph: Graph, optimised: Path, seconds: Mapping[str, float]) -> list[Kernel]:
    """A kernel for each node of onnxruntime's optimised graph.

    A node that gives a value of the model computes it from such values of other nodes; one that does not (a change of
    layout) counts with what reads it.
    """
    nodes = list(onnx.load(optimised, load_external_data=False).graph.node)
    readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in nodes:
        for value in node.input:
            readers[value].append(node)

    borders = {value for node in nodes for value in graph.ends(node)}
    kernels = []
    for node in nodes:
        reached = node
        while not graph.ends(reached) and (after := [r for value in reached.output for r in readers[value]]):
            reached = after[0]
        time = seconds.get(node.name, 0.0)
        kernels.append(Kernel(f"{node.op_type} {node.name}", time, graph.behind(graph.ends(reached), borders)))
    return kernels


def regions(ours: Sequence[Kernel], theirs: Sequence[Kernel], pairs: Sequence[tuple[Kernel, Kernel]]) -> list[Region]:
    """The smallest groups that share no node and part no pair.

    A node that several kernels of one side compute counts for the last: those before prepare.
    """
    owners: list[dict[str, int]] = []
    kernels = [*ours, *theirs]
    parent = list(range(len(kernels)))

    def find(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    for numbers in (range(len(ours)), range(len(ours), len(kernels))):
        owner: dict[str, int] = {}
        for k in reversed(numbers):
            new = [n for n in kernels[k].nodes if n not in owner]
            owner.update(dict.fromkeys(new, k))
            if not new and kernels[k].nodes:  # all of it is counted elsewhere
                parent[find(k)] = find(owner[next(iter(kernels[k].nodes))])
        owners.append(owner)
    for node in owners[0].keys() & owners[1].keys():
        parent[find(owners[0][node])] = find(owners[1][node])
    number = {id(kernel): k for k, kernel in enumerate(kernels)}
    for one, other in pairs:
        parent[find(number[id(one)])] = find(number[id(other)])
    found: dict[int, Region] = defaultdict(Region)
    for k, kernel in enumerate(kernels):
        (found[find(k)].ours if k < len(ours) else found[find(k)].theirs).append(kernel)
    return sorted(found.values(), key=lambda region: -region.lost)


def measure(path: Path, arguments: argparse.Namespace) -> list[Region]:
    """Profile both in turns."""
    import onnxruntime

    given = read_inputs(arguments.input)
    with tempfile.TemporaryDirectory() as folder:
        path = with_names(path, Path(folder))
        wanted = request(path, Compilation(sizes=Sizes(arguments.shape, arguments.dim)), threads=arguments.threads)
        model = wanted.load()
        feeds = feeds_for(model.get_inputs(), model.get_outputs(), given, 0, wanted.single_dims).arrays
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        options.log_severity_level = 4
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/profile"
        options.optimized_model_filepath = f"{folder}/optimised.onnx"
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        profiles = []
        for _ in range(arguments.rounds):
            for _ in range(2):  # the first of a turn finds the caches full of the other's data
                session.run(None, feeds)
            profiles.append(model.profile(feeds, runs=2).outer)
        events = json.loads(Path(session.end_profiling()).read_text())
        graph = Graph(path)
        theirs = their_kernels(graph, Path(folder) / "optimised.onnx", _times_by_node(events))
    seconds = fast_mean(np.array([[row.seconds for row in rows] for rows in profiles]))
    ours = our_kernels(model, [row.step for row in profiles[0]], seconds)
    return regions(ours, theirs, graph.complete(ours))


def _times_by_node(events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean seconds of each node, over every second run; a node that runs several times a run counts them all."""
    runs: list[dict[str, float]] = []
    starts = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == "model_run")
    for begin, end in starts[1::2]:
        run: dict[str, float] = defaultdict(float)
        for e in events:
            if e["name"].endswith("_kernel_time") and begin <= e["ts"] <= end:
                run[e["name"].removesuffix("_kernel_time")] += e["dur"] * 1e-6
        runs.append(run)
    names = {name for run in runs for name in run}
    return {name: float(fast_mean(np.array([run.get(name, 0.0) for run in runs]))) for name in names}


def line(region: Region, total: float) -> str:
    """One row of the table."""
    ours, theirs = (sum(k.seconds for k in kernels) for kernels in (region.ours, region.theirs))
    rate = max(sum(k.flops for k in region.ours), 0) / 1e9 / ours if ours else 0.0
    unit = "GFLOP/s"
    if rate == 0 and ours:
        rate, unit = sum(k.bytes for k in region.ours) / 1e9 / ours, "GB/s"
    ratio = f"{ours / theirs:6.2f}" if theirs else "     -"
    names = [
        " + ".join(k.name for k in kernels[:4]) + " ..." * (len(kernels) > 4)
        for kernels in (region.ours, region.theirs)
    ]
    share = ours / total * 100
    return (
        f"{ours * 1e3:9.4f} {theirs * 1e3:9.4f} {ratio} {share:5.1f}% {rate:7.1f} {unit:7}  {names[0]}  |  {names[1]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--least", type=float, default=0.0, help="print regions with at least this ratio")
    parser.add_argument("--input", action="append")
    parser.add_argument("--dim", action="append")
    parser.add_argument("--shape", action="append")
    arguments = parser.parse_args()
    inputs = arguments.model.with_suffix(".npz")
    arguments.input = arguments.input or ([str(inputs)] if inputs.exists() else None)
    found = measure(arguments.model, arguments)
    ours, theirs = sum(k.seconds for r in found for k in r.ours), sum(k.seconds for r in found for k in r.theirs)
    print(f"{arguments.model.name}: {ours * 1e3:.3f} ms, onnxruntime {theirs * 1e3:.3f} ms in kernels")
    print("  ours ms   ORT ms  ratio  share     rate          our kernels  |  onnxruntime's")
    for region in found:
        other = sum(k.seconds for k in region.theirs)
        if region.lost + other >= arguments.least * other:
            print(line(region, ours))


if __name__ == "__main__":
    main()
