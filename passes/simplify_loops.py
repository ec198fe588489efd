"""Loops carry only what changes and what somebody reads.

Constants that a loop passes round unchanged stand in its body instead, where weights can be packed and folding sees
them; elements of the state that nothing needs go; and a loop of one round is its body.
"""

from onnxla.hlo.builder import Builder
from onnxla.hlo.constant_evaluation import ConstantEvaluator
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.control_flow import Conditional, While
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Tuple
from onnxla.passes.cloning import inline
from onnxla.passes.pass_base import ComputationPass, program_computations


class SimplifyLoops(ComputationPass):
    """Move constants into loops and branches, drop state that nobody reads, and write out loops of one round."""

    name = "simplify-loops"

    def run(self, module: Module) -> bool:
        self.callers: dict[Computation, int] = {}
        for computation in program_computations(module):
            for instruction in computation.instructions():
                for called in instruction.op.computations:
                    self.callers[called] = self.callers.get(called, 0) + 1
        return super().run(module)

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in computation.instructions():
            op = instruction.op
            if isinstance(op, Conditional):
                changed = self._constants_into_branches(instruction) or changed
            elif isinstance(op, While) and isinstance(instruction.operands[0].op, Tuple):
                if not (self._is_open(op.condition) and self._is_open(op.body)):
                    continue
                changed = self._constants_into_loop(instruction) or changed
                if self._write_out(computation, instruction) or self._drop_unread(computation, instruction):
                    changed = True
        return changed

    def _is_open(self, computation: Computation) -> bool:
        """Whether only one instruction calls it, and it takes its parameter apart element by element."""
        users = [u for p in computation.parameters for u in p.users]
        apart = all(isinstance(u.op, GetTupleElement) for u in users) and computation.root not in computation.parameters
        return apart and self.callers[computation] == 1

    def _constants_into_branches(self, instruction: Instruction) -> bool:
        changed = False
        for branch, argument in zip(instruction.op.computations, instruction.operands[1:], strict=True):
            if isinstance(argument.op, Tuple) and self._is_open(branch):
                constants = {k: o for k, o in enumerate(argument.operands) if isinstance(o.op, Constant)}
                changed = self._substitute(branch, constants) or changed
        return changed

    def _constants_into_loop(self, loop: Instruction) -> bool:
        op, (init,) = loop.op, loop.operands
        assert isinstance(op, While)
        constants = {
            k: o for k, o in enumerate(init.operands) if isinstance(o.op, Constant) and _passes_round(op.body, k)
        }
        return any([self._substitute(c, constants) for c in (op.condition, op.body)])

    def _substitute(self, computation: Computation, constants: dict[int, Instruction]) -> bool:
        """Constants of its own in place of elements of the computation's parameter that are constant."""
        computation.instructions()  # forgets dead readers
        (parameter,) = computation.parameters
        changed = False
        for element in list(parameter.users):
            assert isinstance(element.op, GetTupleElement)
            constant = constants.get(element.op.index)
            readers = [u for u in element.users if u is not computation.root or not isinstance(u.op, Tuple)]
            if constant is None or not readers:
                continue
            own = Instruction(constant.op, (), name=constant.name, source=constant.source)
            for reader in readers:
                reader.set_operands([own if o is element else o for o in reader.operands])
            self.count("constants moved in")
            changed = True
        return changed

    def _write_out(self, computation: Computation, loop: Instruction) -> bool:
        """Replace a loop that runs exactly once by its body."""
        op, (init,) = loop.op, loop.operands
        assert isinstance(op, While)
        if _holds(op.condition, init) is not True:
            return False
        after = inline(op.body, [init], loop.source)
        if not isinstance(after.op, Tuple) or _holds(op.condition, after) is not False:
            return False
        computation.replace(loop, after)
        self.count("written out")
        return True

    def _drop_unread(self, computation: Computation, loop: Instruction) -> bool:
        """Shrink the state to the elements that something reads: after the loop, in the condition, or for those."""
        op, (init,) = loop.op, loop.operands
        assert isinstance(op, While)
        if loop is computation.root or not all(isinstance(u.op, GetTupleElement) for u in loop.users):
            return False
        if not isinstance(op.body.root.op, Tuple):
            return False
        needed = _elements_read(list(loop.users)) | _elements_read(_live_users(op.condition))
        made_from = [_elements_of(op.body, root) for root in op.body.root.operands]
        waiting = list(needed)
        while waiting:
            for k in made_from[waiting.pop()] - needed:
                needed.add(k)
                waiting.append(k)
        if len(needed) == len(init.operands) or not needed:
            return False
        kept = sorted(needed)
        b = Builder(source=loop.source)
        state = b.tuple(*(init.operands[k] for k in kept))
        condition = _with_state(op.condition, state, kept, False)
        body = _with_state(op.body, state, kept, True)
        shrunk = b.while_(state, condition, body)
        shrunk.name = loop.name
        for user in list(loop.users):
            assert isinstance(user.op, GetTupleElement)
            computation.replace(user, b.get_tuple_element(shrunk, kept.index(user.op.index)))
        self.count("elements dropped", len(init.operands) - len(kept))
        return True


def _passes_round(body: Computation, k: int) -> bool:
    """Whether element `k` of the state is what it was after every round."""
    if not isinstance(body.root.op, Tuple):
        return False
    element = body.root.operands[k]
    return element.op == GetTupleElement(k) and element.operands[0] is body.parameters[0]


def _live_users(computation: Computation) -> list[Instruction]:
    computation.instructions()
    return list(computation.parameters[0].users)


def _elements_read(users: list[Instruction]) -> set[int]:
    return {u.op.index for u in users if isinstance(u.op, GetTupleElement)}


def _elements_of(body: Computation, value: Instruction) -> set[int]:
    """The elements of the state that `value` is made from."""
    found: set[int] = set()
    stack, seen = [value], {value}
    while stack:
        current = stack.pop()
        if isinstance(current.op, GetTupleElement) and current.operands[0] is body.parameters[0]:
            found.add(current.op.index)
            continue
        for operand in current.operands:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return found


def _holds(condition: Computation, state: Instruction) -> bool | None:
    """The condition's value for a state, where it depends on constants only."""
    copy = inline(condition, [state])
    value = ConstantEvaluator(1 << 16, 0.1).value(copy)
    if copy is not state:
        _forget(copy, state)
    return None if value is None else bool(value)


def _forget(root: Instruction, kept: Instruction) -> None:
    """Undo a copy that nothing reads, down to `kept`."""
    stack = [root]
    while stack:
        current = stack.pop()
        if current is kept or current.users:
            continue
        operands = current.operands
        current.set_operands(())
        stack += operands


def _with_state(computation: Computation, state: Instruction, kept: list[int], is_body: bool) -> Computation:
    """A copy whose parameter, and for a body whose result, has only the elements `kept`."""
    b = Builder(computation.name)
    parameter = b.parameter(state.type, computation.parameters[0].name)
    copies: dict[Instruction, Instruction] = {}
    wanted = [computation.root.operands[k] for k in kept] if is_body else [computation.root]
    stack = [(w, False) for w in reversed(wanted)]
    while stack:
        instruction, expanded = stack.pop()
        if instruction in copies:
            continue
        op = instruction.op
        if isinstance(op, GetTupleElement) and instruction.operands[0] is computation.parameters[0]:
            element = GetTupleElement(kept.index(op.index))
            copies[instruction] = Instruction(element, [parameter], name=instruction.name, source=instruction.source)
        elif expanded:
            operands = [copies[o] for o in instruction.operands]
            copies[instruction] = Instruction(op, operands, name=instruction.name, source=instruction.source)
        else:
            stack.append((instruction, True))
            stack += [(o, False) for o in reversed(instruction.operands)]
    results = [copies[w] for w in wanted]
    return b.build(b.tuple(*results) if is_body else results[0])
