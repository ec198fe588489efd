"""Walk the nodes of one graph or function in order and call each node's rule.

A node that fails gives poisoned outputs; nodes that read poison are skipped, so that the report lists
root causes only, and all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from onnxla.errors import (
    CompileError,
    HloError,
    OnnxlaError,
    Problem,
    ResourceLimitError,
    ShapeError,
    SourceNode,
    UnsupportedOpError,
)
from onnxla.frontends.dependence import blame
from onnxla.frontends.problems import Poisoned, ProblemFound
from onnxla.frontends.session import SessionHost
from onnxla.frontends.tensorflow.graph import Body, Edge, Node, ordered
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import RuleResult, lookup
from onnxla.frontends.tensorflow.session import Session
from onnxla.frontends.tensorflow.state import State
from onnxla.frontends.tensorflow.tables import Table
from onnxla.frontends.tensorflow.values import Handle, ListValue, Nothing, StringConstant, TableHandle, Value, describe
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


class Poison:
    """Stands for the outputs of a node that could not be imported."""


POISON = Poison()
CALLS = ("PartitionedCall", "StatefulPartitionedCall")
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

    def bind(self, name: str, value: Value) -> None:
        """Say what the argument `name`, or the only output of the node `name`, is."""
        self.outputs[name] = (value,)

    def give_up(self, name: str) -> None:
        """Say that a node has no value, for which a problem is noted."""
        self.outputs[name] = POISON

    def run(self, wanted: Iterable[str]) -> None:
        """Import the nodes that `wanted` need, those with effects among them in order."""
        for node in ordered(self.body, [*wanted, *self.body.control_results]):
            if node.name not in self.outputs:
                self.session.count_node(node.op, node.name)
                self._import_node(node)

    def value(self, edge: Edge) -> Value:
        """The value of an edge. Raises Poisoned where it failed."""
        outputs = self.outputs.get(edge.node)
        if isinstance(outputs, Poison):
            raise Poisoned
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
        results: Outputs = POISON
        try:
            view = NodeView(node, source, [self.value(e) for e in node.inputs], self._attributes, self)
            with self.builder.at(source):
                results = self._results(view, self._apply(view))
        except Poisoned:
            self._look_into(node, source)
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

    def _look_into(self, node: Node, source: SourceNode) -> None:
        """Import the function of a call for its problems alone: some of its arguments, or of its results, failed."""
        body = self.function(node.attributes["f"].func.name) if node.op in CALLS else None
        if body is None or body.name in self._calls or len(node.inputs) != len(body.arguments):
            return
        given = [self.outputs.get(edge.node) for edge in node.inputs]
        if not any(isinstance(outputs, Poison) for outputs in given):
            return  # it was imported already
        with self.builder.at(source):
            inner = self._inside(body, self.builder, self._state, node.attributes["f"].func.attr)
        for argument, edge, outputs in zip(body.arguments, node.inputs, given, strict=True):
            if outputs is None or isinstance(outputs, Poison):
                inner.give_up(argument.name)
            else:
                inner.bind(argument.name, self.value(edge))
        inner.run(e.node for e in body.results)

    def _note(self, kind: type[CompileError], cause: str, source: SourceNode, view: NodeView | None) -> None:
        self.session.problems.append(Problem(kind, cause, source, view.details() if view is not None else ()))

    def _apply(self, view: NodeView) -> RuleResult:
        entry = lookup(view.op_type)
        if entry is not None:
            return entry.rule(view, self.builder)
        body = self.function(view.op_type)
        if body is not None:
            return self.import_body(body, view.values(), self.builder, self._state, view.node.attributes)
        raise ProblemFound(
            Problem(UnsupportedOpError, f"{view.op_type} has no import rule", view.source, view.details())
        )

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
        self, body: Body, arguments: Sequence[Value], builder: Builder, state: State, attributes: Mapping[str, Any]
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
