"""When HLO as imported differs from onnxruntime: the node whose rule is wrong, and what ONNX's reference says of it.

A rule sees one node, so a wrong one shows on its node alone, on onnxruntime's values. Where every node alone is right
the difference has grown from rounding.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from onnxla.debugging.case import Case
from onnxla.debugging.culprit import Blame, Culprit
from onnxla.debugging.evaluated import evaluate, evaluate_exactly, imported
from onnxla.debugging.exact import is_rounding
from onnxla.debugging.known_values import KnownValues
from onnxla.debugging.layers import add_every_layer
from onnxla.debugging.model_part import ModelGraph, whole_proto
from onnxla.debugging.parts import flat_outputs
from onnxla.debugging.trial import Settings, compared
from onnxla.errors import OnnxlaError
from onnxla.runtime.tensors import Array


def import_culprit(case: Case, settings: Settings) -> Culprit | None:
    """Blame the rule of the first node that is wrong alone, unless ONNX's reference sides with the rule."""
    for operator, one in _single_nodes(case, settings):
        try:
            found = imported(one, settings.options)
            evaluated = evaluate(found.module, found, one)
        except OnnxlaError:  # a node that only makes sense among others
            continue
        wrong = [c for c in compared(evaluated, one.expected, settings) if not c.agrees]
        if not wrong or _is_rounding(one, evaluated, settings):
            continue
        details = ["HLO as imported, evaluated in numpy, gives another value than onnxruntime"]
        reference = reference_results(one)
        if reference is None:
            details.append("ONNX's reference implementation does not run this node")
        elif _agree(evaluated, reference, settings):
            return Culprit(Blame.WITNESS, operator, details=tuple(details), comparison=wrong[0])
        elif _agree(one.expected, reference, settings):
            details.append("ONNX's reference implementation sides with onnxruntime")
        else:
            details.append("ONNX's reference implementation gives a third value")
        return Culprit(Blame.IMPORT, operator, details=tuple(details), comparison=wrong[0])
    return None


def _single_nodes(case: Case, settings: Settings) -> Iterator[tuple[str, Case]]:
    """Each node of a case as a case of its own, with its operator."""
    graph = ModelGraph(case.model)
    if len(graph.nodes) == 1:
        yield graph.nodes[0].op_type, case
        return
    folder = Path(case.model.folder.path) if case.model.folder is not None else Path(".")
    try:
        known = KnownValues(add_every_layer(whole_proto(case.model)), folder, case.feeds, settings.threads or 1)
    except OnnxlaError:  # onnxruntime does not give every value
        return
    for k, node in enumerate(graph.nodes):
        part = graph.part([k], [name for name in node.output if name in known.names])
        cut = graph.cut_values(part)
        if not part.outputs or not set(cut) <= known.names:
            continue
        values, results = known.get(cut), known.get(part.outputs)
        fixed = graph.known(cut)
        feeds = {name: array for name, array in values.items() if name not in fixed}
        yield node.op_type, Case(graph.extract(part, values, results), feeds, results)


def _agree(results: Mapping[str, Array], reference: Mapping[str, Array], settings: Settings) -> bool:
    return all(c.agrees for c in compared(results, reference, settings))


def _is_rounding(case: Case, evaluated: Mapping[str, Array], settings: Settings) -> bool:
    exact = evaluate_exactly(case, settings.options)
    return exact is not None and all(
        name in exact and is_rounding(array, case.expected[name], exact[name])
        for name, array in evaluated.items()
        if name in case.expected
    )


def reference_results(case: Case) -> dict[str, Array] | None:
    """What ONNX's reference implementation gives; None where it cannot run the model."""
    from onnx.reference import ReferenceEvaluator

    names = [o.name for o in case.model.proto.graph.output]
    try:
        with np.errstate(all="ignore"):
            values = ReferenceEvaluator(whole_proto(case.model)).run(names, dict(case.feeds))
    except Exception:  # it raises many kinds, and does not know every operator
        return None
    return flat_outputs(dict(zip(names, values or (), strict=True)))
