"""From a model and the sizes of its inputs to clusters, and from these to stages that run.

bind sizes -> survey (what can be imported) -> clusters -> a part of the model for each -> compiled, or in onnxruntime
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from onnx import TensorProto, ValueInfoProto, helper

from onnxla import watch
from onnxla.compiler.compiler import Compiler
from onnxla.compiler.onnx_source import OnnxSource
from onnxla.compiler.sources import Shapes
from onnxla.config import CompileOptions, Limits
from onnxla.errors import CompileError, InputError, Problem
from onnxla.fallback.clusters import Cluster, Clustering
from onnxla.fallback.known_types import KnownTypes
from onnxla.fallback.parts import part_of, tensor_info
from onnxla.fallback.session import Session
from onnxla.fallback.wiring import Wiring
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.signature import STRINGS, signature_of
from onnxla.frontends.onnx.survey import Survey, survey
from onnxla.frontends.signature import TensorSpec, bind_inputs
from onnxla.hlo.types import Array
from onnxla.runtime.mixed_model import MixedPlan, Stage, finished
from onnxla.runtime.mixed_parts import ExpectedType
from onnxla.runtime.mixed_report import ClusterReport, FallbackReport
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.report import CompileReport
from onnxla.runtime.signature import ModelSignature, input_tensors, result_tensors


@dataclass(frozen=True)
class Partition:
    """A model cut into clusters, for sizes (and values) of its inputs."""

    model: OnnxModel
    wiring: Wiring
    survey: Survey
    clustering: Clustering
    constants: Mapping[str, Array]
    """Values of inputs that the clusters are made for: those given, and those that decide shapes."""

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        return self.clustering.clusters

    @cached_property
    def _cluster_of(self) -> dict[int, int]:
        return {node: k for k, cluster in enumerate(self.clusters) for node in cluster.nodes}

    def outputs_of(self, cluster: Cluster) -> list[str]:
        """What a cluster makes for others, and for the user."""
        number, given = self.clusters.index(cluster), set(self.wiring.outputs)
        return [
            name
            for node in cluster.nodes
            for name in self.wiring.makes(node)
            if name in given or self.is_assumed(name) or self._leaves(name, number)
        ]

    def is_assumed(self, name: str) -> bool:
        """Whether the type of a value that onnxruntime makes is inferred, and something was imported because of it."""
        return (
            self.wiring.maker.get(name) in self.survey.failed
            and self.survey.type(name) is not None
            and not self.survey.imported.isdisjoint(self.wiring.readers.get(name, ()))
        )

    def _leaves(self, name: str, number: int) -> bool:
        """Whether a value is handed over: those that are known are weights of all that read them."""
        readers = self.wiring.readers.get(name, ())
        return any(self._cluster_of.get(r, number) != number for r in readers) and not self.clustering.is_known(name)

    def nodes_of(self, cluster: Cluster) -> list[int]:
        """The nodes of a cluster that have to run: not those whose results are known to all that read them."""
        return self.wiring.needed(cluster.nodes, self.outputs_of(cluster))

    def known_in(self, nodes: list[int]) -> dict[str, Array]:
        """The values that nodes read, from outside of them, and that are the same in every run; no weights."""
        made = {name for k in nodes for name in self.wiring.makes(k)}
        known = {}
        for name in dict.fromkeys(name for k in nodes for name in self.wiring.reads[k]):
            if name in self.constants:
                known[name] = self.constants[name]
            elif name in self.wiring.maker and name not in made and self.clustering.is_known(name):
                value = self.survey.known_value(name)
                assert value is not None
                known[name] = value
        return known

    def inputs_of(self, nodes: list[int]) -> list[str]:
        """What nodes read that others make in each run: inputs of the model too."""
        made = {name for k in nodes for name in self.wiring.makes(k)}
        known = self.known_in(nodes)
        inputs = {spec.name for spec in self.survey.inputs}
        read = dict.fromkeys(name for k in nodes for name in self.wiring.reads[k])
        return [n for n in read if n not in made and n not in known and (n in self.wiring.maker or n in inputs)]

    def report(self, compiled: Mapping[int, CompileReport] | None = None) -> FallbackReport:
        """The clusters, and why what is in onnxruntime is; `compiled` has what compiling did, by cluster."""
        found = []
        for k, cluster in enumerate(self.clusters):
            nodes = self.nodes_of(cluster)
            found.append(
                ClusterReport(
                    cluster.compiled,
                    tuple(self.wiring.label(node) for node in nodes),
                    tuple(self.wiring.operator(node) for node in nodes),
                    tuple(self.inputs_of(nodes)),
                    tuple(self.outputs_of(cluster)),
                    () if cluster.compiled else tuple(self.clustering.reasons[node] for node in nodes),
                    (compiled or {}).get(k),
                )
            )
        return FallbackReport(self.model.name, tuple(found))


def partition(
    model: OnnxModel,
    options: CompileOptions,
    limits: Limits,
    constants: Mapping[str, Array],
    shapes: Shapes,
    dims: Mapping[str, int],
    values: Mapping[str, Array] | None,
    doubted: frozenset[str] = frozenset(),
) -> Partition:
    """Cut a model. `values` are the arrays of a run: those that decide shapes become constants. Without them, such
    values are an error, whose `needs_constants` says which; with `values={}` what needs them goes to onnxruntime.

    Raises UnboundDimensionsError while dimensions have no size, ModelFormatError for what is not a valid model, and
    CompileError for inputs of impossible sizes.
    """
    wiring = Wiring(model)
    declared = signature_of(model)
    sizes = {spec.name for spec in declared.inputs if spec.name not in constants and _is_of_sizes(spec, shapes)}
    settled = dict(constants)
    while True:
        open_shapes = {name: shape for name, shape in shapes.items() if name not in settled}
        inputs = bind_inputs(declared.inputs, open_shapes, dims, settled, (d.name for d in declared.defaults))
        found = survey(
            model,
            shapes=open_shapes,
            dims=dims,
            constants=settled,
            options=options,
            limits=limits,
            stand_ins=KnownTypes(model, inputs, dims, settled, doubted),
        )
        helpful = [p for p in found.problems if p.needs_constants and sizes.issuperset(p.needs_constants)]
        needed = {name for p in helpful for name in p.needs_constants} - settled.keys()
        if values is None and needed:
            raise CompileError(helpful)
        if values is None or not needed or not needed <= values.keys():
            break
        settled |= {name: values[name].copy() for name in needed}
    return Partition(model, wiring, found, Clustering(wiring, found), settled)


def _is_of_sizes(spec: TensorSpec, shapes: Shapes) -> bool:
    """Whether an input looks like a shape, axes or a count: code is made for its value where it decides a shape.

    For other values onnxruntime is there: code for each image or text would be too much. Strings without a shape wait
    for one, too, since only strings of known shape are compiled.
    """
    shape = shapes.get(spec.name, spec.shape)
    if spec.onnx_type == STRINGS:
        return not all(isinstance(n, int) for n in shape or (None,))
    few = shape is not None and len(shape) <= 1 and all(isinstance(n, int) and n <= _MOST_SIZES for n in shape)
    return few and spec.element is not None and spec.element.is_integer


_MOST_SIZES = 8
"""Most elements of an input that is taken for sizes."""


def build(cut: Partition, options: CompileOptions, limits: Limits, threads: int) -> MixedPlan:
    """Compile the clusters, and start sessions for the rest. Raises CompileError where onnxruntime refuses its part."""
    makers: dict[str, Session] = {}
    stages: list[Stage] = []
    reports: dict[int, CompileReport] = {}
    count = len(cut.clusters)
    for k, cluster in enumerate(cut.clusters):
        nodes = cut.nodes_of(cluster)
        names, outputs = cut.inputs_of(nodes), cut.outputs_of(cluster)
        protos = [cut.wiring.nodes[node] for node in nodes]
        part = part_of(cut.model, protos, [_info(cut, name, makers) for name in names], outputs, cut.known_in(nodes))
        with watch.span("", k / count, (k + 1) / count):
            if cluster.compiled:
                compiled, report = _compiled(part, _options_of(options, k, count), limits, threads)
                stages.append(Stage(tuple(names), tuple(outputs), compiled))
                reports[k] = report
                continue
            try:
                session = Session(part, threads)
            except InputError as error:
                raise _refused_by_both(cut, nodes, str(error)) from error
            makers |= dict.fromkeys(outputs, session)
            stages.append(Stage(tuple(names), tuple(outputs), session))
    inputs = {spec.name: spec.shape for spec in cut.survey.inputs if spec.element is not None}
    return MixedPlan(
        tuple(stages),
        {name: tuple(n for n in shape or () if isinstance(n, int)) for name, shape in inputs.items()},
        cut.constants,
        _expected(cut),
        _values_of_outputs(cut),
        cut.report(reports),
        finished(stages, cut.wiring.outputs),
    )


def _refused_by_both(cut: Partition, nodes: Sequence[int], text: str) -> CompileError:
    """What the import said of the nodes, and what onnxruntime says."""
    found = [problem for node in nodes for problem in cut.clustering.reasons[node].problems]
    kinds = {problem.kind for problem in found}
    kind = kinds.pop() if len(kinds) == 1 else CompileError
    return kind([*found, Problem(kind, text)])


def _info(cut: Partition, name: str, makers: Mapping[str, Session]) -> ValueInfoProto:
    """A value as the input of a part: of its static type where there is one, else of the type that it is known by."""
    kind = cut.survey.type(name)
    session = makers.get(name)
    if kind is not None:
        return tensor_info(name, kind)
    if session is not None:
        return session.info(name)
    spec = next(spec for spec in cut.survey.inputs if spec.name == name)
    if spec.onnx_type == STRINGS and spec.is_static:
        return helper.make_tensor_value_info(name, TensorProto.STRING, spec.shape)
    declared: Sequence[ValueInfoProto] = cut.model.proto.graph.input
    return next(info for info in declared if info.name == name)


def _compiled(
    part: OnnxModel, options: CompileOptions, limits: Limits, threads: int
) -> tuple[CompiledModel, CompileReport]:
    source = OnnxSource(part, options, limits, {})
    program, report, _ = Compiler(source, "cpu", options).program()
    declared = source.signature({}, {})
    signature = ModelSignature(input_tensors(program), result_tensors(program, declared.outputs))
    return CompiledModel(signature, [program], num_threads=threads, reports=[report]), report


def _options_of(options: CompileOptions, number: int, count: int) -> CompileOptions:
    """The options, dumps of each cluster in a folder of its own."""
    if options.dump_to is None or count == 1:
        return options
    return replace(options, dump_to=os.path.join(options.dump_to, f"cluster-{number + 1}"))


def _expected(cut: Partition) -> dict[str, ExpectedType]:
    """The types of what onnxruntime gives that the clusters were planned with."""
    kinds = {name: cut.survey.type(name) for name in cut.wiring.maker if cut.is_assumed(name)}
    return {name: (kind.element.dtype, kind.shape) for name, kind in kinds.items() if kind is not None}


def _values_of_outputs(cut: Partition) -> dict[str, Array]:
    """Outputs of the model that no node makes and no run gives: weights."""
    inputs = {spec.name for spec in cut.survey.inputs}
    found = {}
    for name in cut.wiring.outputs:
        if name not in cut.wiring.maker and name not in inputs:
            value = cut.survey.known_value(name)
            assert value is not None
            found[name] = value
    return found
