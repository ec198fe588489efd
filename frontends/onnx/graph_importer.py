"""Walk the nodes of one graph, body or function in order and call each node's rule.

A node that fails gives poisoned outputs. Rules of nodes that read poison are asked as well, and get as far as they come
without it, so that the report lists root causes only, and all of them.
"""

import contextlib
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence

from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto

from onnxla.errors import (
    CompileError,
    HloError,
    OnnxlaError,
    Problem,
    ResourceLimitError,
    ShapeError,
    SourceNode,
)
from onnxla.frontends.dependence import blame
from onnxla.frontends.onnx.failed_values import COMPUTING, Binding
from onnxla.frontends.onnx.functions import (
    FunctionCall,
    attributes_of,
    has_standard_body,
    local_call,
    standard_call,
)
from onnxla.frontends.onnx.missing_rules import no_rule_problem
from onnxla.frontends.onnx.node_form import faults_of_form, unknown_attributes
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.operator_names import normal_domain, qualified_name
from onnxla.frontends.onnx.registry import NoRule, Rule, RuleResult, lookup
from onnxla.frontends.onnx.session import Session
from onnxla.frontends.onnx.string_movement import as_chosen, moves_strings, strings_at
from onnxla.frontends.onnx.structure import free_names, in_order, live_nodes, node_name
from onnxla.frontends.onnx.values import StringConstant, Value, describe
from onnxla.frontends.onnx.weights import dense_array
from onnxla.frontends.poison import POISON, Poison, poison_behind, poison_of_unknown
from onnxla.frontends.problems import FOR_ONNX, Poisoned, ProblemFound, UnknownOperation
from onnxla.frontends.session import SessionHost
from onnxla.hlo.builder import Builder
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array

_RUN_IN_ANY_CASE = {"Loop": ("body",), "Scan": ("body",)}
"""Subgraphs that are imported whatever the node reads. Of an If only one may be."""

_SCAN_WITHOUT_LENGTHS = 9
"""The first opset whose Scan has no lengths of sequences as its first input."""


def _require_form(view: NodeView, node: NodeProto, attributes: Mapping[str, AttributeProto]) -> None:
    """A problem where a node is not what its operator is, whatever it reads."""
    unknown = unknown_attributes(node, view.opset)
    if unknown:
        view.unsupported(
            f"{node.op_type} has no attribute {', '.join(unknown)} at opset {view.opset}",
            "the model was written for another opset than it imports",
        )
    faults = list(faults_of_form(node, attributes, view.opset))
    if faults:
        view.malformed("; ".join(faults))


class GraphImporter(SessionHost):
    """One graph being imported into one builder. Also what its node views ask (`node_view.Host`)."""

    session: Session

    def __init__(
        self,
        session: Session,
        builder: Builder,
        opsets: Mapping[str, int],
        values: ChainMap[str, Binding],
        *,
        attributes: Mapping[str, AttributeProto] | None = None,
        path: str = "",
        calls: tuple[tuple[str, ...], ...] = (),
        depth: int = 0,
    ) -> None:
        if depth > session.limits.nesting:
            raise ResourceLimitError(f"subgraphs and functions are nested deeper than {session.limits.nesting}")
        self.session = session
        self.builder = builder
        self.opsets = opsets
        self.values = values
        self._attributes = attributes or {}
        self._path = path
        self._calls = calls
        self._depth = depth

    # Names

    def bind_constant(self, name: str, array: Array) -> None:
        """Bind `name` to a constant: an HLO literal that views `array`, or a constant of strings."""
        if array.dtype == object:
            self.values[name] = StringConstant(array)
        else:
            self.values[name] = self.builder.literal(Literal(array, name))

    def bind_initializers(self, graph: GraphProto, skipped: Iterable[str] = ()) -> None:
        """Bind the initializers of a subgraph (the main graph's large ones come from the file)."""
        main = graph is self.session.model.proto.graph
        leave_out = set(skipped)
        for position, tensor in enumerate(graph.initializer):
            if tensor.name not in leave_out:
                model = self.session.model
                self.bind_constant(tensor.name, model.initializer(position) if main else model.tensor(tensor))
        for sparse in graph.sparse_initializer:
            if sparse.values.name not in leave_out:
                self.bind_constant(sparse.values.name, dense_array(sparse, self.session.model.folder))

    def outputs(self, names: Iterable[str]) -> list[Value]:
        """The values of `names`. Raises Poisoned where one failed."""
        found: list[Value] = []
        for name in names:
            value = self.values.get(name)
            if isinstance(value, Poison):
                raise Poisoned
            if value is None:
                raise CompileError(f"the output {name!r} has no value: it is an input that was left out")
            found.append(value)
        return found

    # Nodes

    def run(self, nodes: Sequence[NodeProto], outputs: Iterable[str]) -> None:
        """Import the nodes that `outputs` need, each after those it reads from."""
        for index, node in live_nodes(in_order(nodes), outputs):
            self.session.count_node(node.op_type, node.name)
            self._import_node(index, node)

    def _import_node(self, index: int, node: NodeProto) -> None:
        domain = normal_domain(node.domain)
        # A domain the model forgot to import counts as version 1, as in onnxruntime.
        opset = self.opsets.get(domain, 1)
        name = self._path + node_name(node, index)
        source = SourceNode(name, qualified_name(node.op_type, domain), index, opset)
        inputs = self._inputs(node)
        attributes = attributes_of(node, self._attributes)
        view = NodeView(node, source, inputs, attributes, self)
        poison = POISON
        results: Sequence[Binding] | None = None
        try:
            with self.builder.at(source):
                results = self._results(view, self._apply(view, node, inputs, attributes))
        except Poisoned:
            poison = poison_behind(inputs, computes=not domain and node.op_type in COMPUTING)
        except UnknownOperation as found:
            self.session.problems.append(found.problem)
            poison = poison_of_unknown(inputs, self.known_value)
        except ProblemFound as found:
            self.session.problems.append(found.problem)
        except HloError as error:
            self._note(ShapeError, f"{node.op_type}: {error}", source, view)
        except MemoryError as error:
            raise ResourceLimitError(f"{source} needs more memory than there is: {error}") from error
        except (ResourceLimitError, RecursionError):
            raise
        except OnnxlaError as error:
            self._note(CompileError, f"{node.op_type}: {error}", source, view)
        except Exception as error:  # a malformed node may surprise a rule in any way
            cause = f"the import rule of {node.op_type} failed with {type(error).__name__}: {error}"
            self._note(CompileError, cause, source, view, "if ONNX's checker accepts the model, this is onnxla's fault")
        results = (poison,) * len(node.output) if results is None else results
        for output_name, result in zip(node.output, results, strict=False):
            if output_name:
                if isinstance(result, Instruction) and not result.name:
                    result.name = output_name
                self.values[output_name] = result

    def _note(self, kind: type[CompileError], cause: str, source: SourceNode, view: NodeView, hint: str = "") -> None:
        self.session.problems.append(Problem(kind, cause, source, view.details(), hint or FOR_ONNX[kind]))

    def _inputs(self, node: NodeProto) -> list[Binding]:
        """What a node's inputs are bound to, trailing ones that are left out dropped."""
        inputs = [self.values.get(name) if name else None for name in node.input]
        while inputs and inputs[-1] is None:
            inputs.pop()
        return inputs

    def _apply(
        self,
        view: NodeView,
        node: NodeProto,
        inputs: Sequence[Binding],
        attributes: Mapping[str, AttributeProto],
    ) -> "RuleResult | Sequence[Binding]":
        """The node's outputs by a model-local function, a rule, or the standard's function body."""
        domain = normal_domain(node.domain)
        local = self.session.functions.get((domain, node.op_type, node.overload))
        if local is not None:
            return self._call(view, local_call(local, attributes), inputs)
        try:
            rule = lookup(node.op_type, domain, view.opset)
        except NoRule as error:
            if has_standard_body(node.op_type, domain, view.opset):
                _require_form(view, node, attributes)
            call = standard_call(node, attributes, view.opset, inputs)
            if call is None:
                problem = no_rule_problem(error, node.op_type, domain, view.source, view.details())
                raise UnknownOperation(problem) from None
            return self._call(view, call, inputs)
        _require_form(view, node, attributes)
        try:
            return self._by_rule(rule, view, node, inputs, attributes)
        except Poisoned:
            self._look_into(view, node, inputs)
            raise

    def _by_rule(
        self,
        rule: Rule,
        view: NodeView,
        node: NodeProto,
        inputs: Sequence[Binding],
        attributes: Mapping[str, AttributeProto],
    ) -> RuleResult:
        if moves_strings(node.op_type, inputs):
            strings = as_chosen(self.builder, inputs[0])
            moved = rule(NodeView(node, view.source, [strings.places, *inputs[1:]], attributes, self), self.builder)
            tensors = [moved] if isinstance(moved, Instruction) else moved
            return [strings_at(t, strings, self.known_value) for t in tensors]  # type: ignore[arg-type,union-attr]
        return rule(view, self.builder)

    def _look_into(self, view: NodeView, node: NodeProto, inputs: Sequence[Binding]) -> None:
        """Import the subgraphs that run in any case for their problems alone: some of what the node reads failed."""
        names: Sequence[str] = _RUN_IN_ANY_CASE.get(node.op_type, ()) if not normal_domain(node.domain) else ()
        if node.op_type == "If" and view.failed_but_computed(0):
            names = ("then_branch", "else_branch")
        if not any(isinstance(value, Poison) for value in inputs):
            return  # they were imported already
        for name in names:
            graph = view.graph(name)
            with contextlib.suppress(Poisoned):
                self.import_body(
                    graph, self._in_body(node, graph, inputs, view.opset), Builder(name, view.source), None
                )

    def _in_body(self, node: NodeProto, graph: GraphProto, inputs: Sequence[Binding], opset: int) -> list[Poison]:
        """What stands for the inputs of a body: a carried or scanned value is computed in it where it is outside."""
        first = 2 if node.op_type == "Loop" else 0
        outside = inputs[1:] if node.op_type == "Scan" and opset < _SCAN_WITHOUT_LENGTHS else inputs
        found = [POISON] * len(graph.input)
        for i, value in list(enumerate(outside[: len(found)]))[first:]:
            found[i] = poison_of_unknown([value], self.known_value)
        return found

    def _results(self, view: NodeView, result: "RuleResult | Sequence[Binding]") -> Sequence[Binding]:
        single = isinstance(result, Value)
        results: Sequence[Binding] = [result] if single else list(result)  # type: ignore[list-item,arg-type]
        for i in range(view.output_count):
            if view.has_output(i) and (i >= len(results) or results[i] is None):
                view.unsupported(
                    f"output {i} of {view.op_type} is not made", "leave the output out where nothing needs it"
                )
        for value in results:
            if isinstance(value, Instruction) and value.tensor_type.size > self.session.limits.elements:
                raise ResourceLimitError(
                    f"{view.source} gives {describe(value)}; Limits(elements=...) allows {self.session.limits.elements}"
                )
        return results

    # Functions and subgraphs

    def _call(self, view: NodeView, call: FunctionCall, inputs: Sequence[Binding]) -> Sequence[Binding]:
        """The results of a function; where one of them failed, all do."""
        if call.key in self._calls:
            raise CompileError(f"the function {'.'.join(filter(None, call.key))} calls itself")
        arguments: dict[str, Binding] = {name: None for name in call.body.input}
        arguments.update(zip(call.body.input, inputs, strict=False))
        inner = GraphImporter(
            self.session,
            self.builder,
            {**self.opsets, **call.opsets},
            ChainMap(arguments),
            attributes=call.attributes,
            path=f"{view.source.name}/",
            calls=(*self._calls, call.key),
            depth=self._depth + 1,
        )
        inner.run(call.body.node, call.body.output)
        wanted = [name if view.has_output(i) else "" for i, name in enumerate(call.body.output)]
        try:
            return [inner.outputs([name])[0] if name else None for name in wanted]
        except Poisoned:
            found = [inner.values.get(name) for name in wanted]
            return [value if isinstance(value, Poison) else POISON for value in found]

    def import_body(
        self, graph: GraphProto, arguments: Sequence[Binding], builder: Builder, captured: Mapping[str, Binding] | None
    ) -> list[Value]:
        outer = self.values if captured is None else ChainMap[str, Binding](dict(captured))
        inner = GraphImporter(
            self.session,
            builder,
            self.opsets,
            outer.new_child(),
            attributes=self._attributes,
            path=f"{builder.source.name}/" if builder.source else self._path,
            calls=self._calls,
            depth=self._depth + 1,
        )
        inputs = [i.name for i in graph.input]
        if len(arguments) != len(inputs):
            raise CompileError(f"the subgraph has {len(inputs)} inputs; {len(arguments)} were expected")
        inner.bind_initializers(graph, inputs)
        inner.values.update(zip(inputs, arguments, strict=True))
        outputs = [o.name for o in graph.output]
        inner.run(graph.node, outputs)
        return inner.outputs(outputs)

    def captures(self, graph: GraphProto) -> dict[str, Value | Poison]:
        found = {name: self.values.get(name) for name in free_names(graph)}
        return {name: value for name, value in found.items() if value is not None}

    # What rules ask (see node_view.Host)

    def named(self, name: str) -> Value | None:
        value = self.values.get(name)
        if isinstance(value, Poison):
            raise Poisoned
        return value

    def blame(self, instruction: Instruction, role: str, source: SourceNode) -> Problem:
        return blame(self.session, instruction, role, source)

    def tensor(self, tensor: TensorProto) -> Array:
        return self.session.model.tensor(tensor)

    def dense_tensor(self, sparse: SparseTensorProto) -> Array:
        return dense_array(sparse, self.session.model.folder)
