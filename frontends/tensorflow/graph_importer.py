"""Walk the nodes of one graph or function in order and call each node's rule.

A node that fails gives poisoned outputs. Rules of nodes that read poison are asked as well, and get as far as they come
without it, so that the report lists root causes only, and all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

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
from onnxla.frontends.poison import POISON, Poison, poison_behind, poison_of_unknown
from onnxla.frontends.problems import FOR_TENSORFLOW, Poisoned, ProblemFound, UnknownOperation
from onnxla.frontends.session import SessionHost
from onnxla.frontends.tensorflow.graph import MISSING, Body, Edge, Node, ordered
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import RuleResult, lookup
from onnxla.frontends.tensorflow.session import Session
from onnxla.frontends.tensorflow.state import State
from onnxla.frontends.tensorflow.tables import Table
from onnxla.frontends.tensorflow.unknown_operations import unknown_operation
from onnxla.frontends.tensorflow.values import (
    COMPUTING,
    Binding,
    Handle,
    ListValue,
    Nothing,
    StringConstant,
    TableHandle,
    Value,
    describe,
)
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

Outputs: TypeAlias = Sequence[Value | None] | Poison


class GraphImporter(SessionHost):
    """One body being imported into one builder. Also what its node views ask (`node_view.Host`)."""

    session: Session

    def __init__(
        self,
        session: Session,
        builder: Builder,
        body: Body,
        state: State,
        *,
        attributes: Mapping[str, Any] | None = None,
        path: str = "",
        calls: tuple[str, ...] = (),
    ) -> None:
        if len(calls) > session.limits.nesting:
            raise ResourceLimitError(f"functions are nested deeper than {session.limits.nesting}")
        self.session = session
        self.builder = builder
        self.body = body
        self._state = state
        self.outputs: dict[str, Outputs] = {}
        """The outputs of nodes, and the values of arguments, by name."""
        self._attributes = attributes or {}
        self._path = path
        self._calls = calls

    def bind(self, name: str, value: Binding) -> None:
        """Say what the argument `name`, or the only output of the node `name`, is."""
        self.outputs[name] = value if isinstance(value, Poison) else (value,)

    def give_up(self, name: str) -> None:
        """Say that a node has no value, for which a problem is noted."""
        self.outputs[name] = POISON

    def run(self, wanted: Iterable[str]) -> None:
        """Import the nodes that `wanted` need, those with effects among them in order.

        Problems are in the order of the body's nodes, which is not that in which they are imported.
        """
        found: list[tuple[int, Problem]] = []
        for node in ordered(self.body, [*wanted, *self.body.control_results]):
            if node.name not in self.outputs:
                self.session.count_node(node.op, node.name)
                before = self.problem_count()
                self._import_node(node)
                found += [(node.index, problem) for problem in self.forget_problems(before)]
        self.note_problems([problem for _, problem in sorted(found, key=itemgetter(0))])

    def value(self, edge: Edge) -> Value:
        """The value of an edge. Raises Poisoned where it failed."""
        value = self._binding(edge)
        if isinstance(value, Poison):
            raise Poisoned
        return value

    def _binding(self, edge: Edge) -> Binding:
        outputs = self.outputs.get(edge.node)
        if isinstance(outputs, Poison):
            return outputs
        if outputs is None:
            raise CompileError(f"{edge} has no value: its node was not imported")
        place = edge.index
        node = self.body.nodes.get(edge.node)
        entry = lookup(node.op) if node is not None else None
        if edge.argument and entry is not None and entry.outputs:
            if edge.argument not in entry.outputs:
                raise CompileError(f"{edge}: {entry.name} has the outputs {', '.join(entry.outputs)}")
            place += entry.outputs.index(edge.argument)
        value = outputs[place] if place < len(outputs) else None
        if value is None:
            raise CompileError(f"the output {edge} is not made")
        return value

    def _import_node(self, node: Node) -> None:
        source = SourceNode(self._path + node.name, node.op, node.index)
        view: NodeView | None = None
        inputs: Sequence[Binding] = ()
        results: Outputs = POISON
        try:
            inputs = [self._binding(e) for e in node.inputs]
            view = NodeView(node, source, inputs, self._attributes, self)
            with self.builder.at(source):
                results = self._results(view, self._apply(view))
        except Poisoned:
            results = poison_behind(inputs, computes=node.op in COMPUTING)
        except UnknownOperation as found:
            self.session.problems.append(found.problem)
            results = poison_of_unknown(inputs, self.known_value)
        except ProblemFound as found:
            self.session.problems.append(found.problem)
        except HloError as error:
            self._note(ShapeError, f"{node.op}: {error}", source, view)
        except MemoryError as error:
            raise ResourceLimitError(f"{source} needs more memory than there is: {error}") from error
        except (ResourceLimitError, RecursionError):
            raise
        except OnnxlaError as error:
            self._note(CompileError, f"{node.op}: {error}", source, view)
        except Exception as error:  # a malformed node may surprise a rule in any way
            self._note(CompileError, f"the rule of {node.op} failed with {type(error).__name__}: {error}", source, view)
        if not isinstance(results, Poison):
            for k, result in enumerate(results):
                if isinstance(result, Instruction) and not result.name:
                    result.name = node.name if k == 0 else f"{node.name}:{k}"
        self.outputs[node.name] = results

    def _note(self, kind: type[CompileError], cause: str, source: SourceNode, view: NodeView | None) -> None:
        details = view.details() if view is not None else ()
        self.session.problems.append(Problem(kind, cause, source, details, FOR_TENSORFLOW[kind]))

    def _apply(self, view: NodeView) -> RuleResult:
        if view.op_type == MISSING:
            raise Poisoned
        entry = lookup(view.op_type)
        if entry is not None:
            return entry.rule(view, self.builder)
        body = self.function(view.op_type)
        if body is not None:
            return self.import_body(body, view.arguments(), self.builder, self._state, view.node.attributes)
        raise UnknownOperation(unknown_operation(view.source, view.details()))

    def _results(self, view: NodeView, result: RuleResult) -> Sequence[Value | None]:
        if result is None:
            return ()
        single = isinstance(result, (Instruction, StringConstant, Handle, TableHandle, ListValue, Nothing))
        results: Sequence[Value | None] = [result] if single else list(result)  # type: ignore[list-item,arg-type]
        for value in results:
            if isinstance(value, Instruction) and value.tensor_type.size > self.session.limits.elements:
                raise ResourceLimitError(
                    f"{view.source} gives {describe(value)}; Limits(elements=...) allows {self.session.limits.elements}"
                )
        return results

    # What rules ask (see node_view.Host)

    @property
    def state(self) -> State:
        return self._state

    def function(self, name: str) -> Body | None:
        return self.session.model.functions.get(name)

    def table(self, name: str) -> Table | None:
        return self.session.model.tables.get(name)

    def _inside(self, body: Body, builder: Builder, state: State, attributes: Mapping[str, Any]) -> "GraphImporter":
        path = f"{builder.source.name}/" if builder.source else self._path
        calls = (*self._calls, body.name)
        return GraphImporter(self.session, builder, body, state, attributes=attributes, path=path, calls=calls)

    def import_body(
        self, body: Body, arguments: Sequence[Binding], builder: Builder, state: State, attributes: Mapping[str, Any]
    ) -> list[Value]:
        if body.name in self._calls:
            raise CompileError(f"the function {body.name} calls itself")
        if len(arguments) != len(body.arguments):
            raise CompileError(f"{body.name} takes {len(body.arguments)} arguments; {len(arguments)} are given")
        inner = self._inside(body, builder, state, attributes)
        for argument, value in zip(body.arguments, arguments, strict=True):
            inner.bind(argument.name, value)
        inner.run(e.node for e in body.results)
        return [inner.value(e) for e in body.results]

    def blame(self, instruction: Instruction, role: str, source: SourceNode) -> Problem:
        return blame(self.session, instruction, role, source)
