"""The code of a kernel in each language that there is, and what it needs: instructions, stack, registers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FRAME = re.compile(r"^\s+(?:subq\s+\$(\d+), %rsp|sub\s+sp, sp, #(\d+))", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s+[a-z][\w.]*(?:\s|$)", re.MULTILINE)
_PTX_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.MULTILINE)
_COMPILING = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


@dataclass(frozen=True)
class KernelCode:
    """`texts` by language, in the order the compiler makes them; `resources` in words."""

    texts: Mapping[str, str]
    resources: Mapping[str, str]


def cpu_code(llvm_ir: str, assembly: str) -> KernelCode:
    """A kernel for a CPU."""
    body = assembly.partition(":\n")[2]
    frames = [int(a or b) for a, b in _FRAME.findall(assembly)]
    resources = {
        "instructions": str(len(_INSTRUCTION.findall(body))),
        "stack": f"{max(frames, default=0)} bytes",
        "LLVM IR": f"{llvm_ir.count(chr(10))} lines",
    }
    return KernelCode({"LLVM IR": llvm_ir, "assembly": assembly}, resources)


def gpu_code(functions: Mapping[str, str], ptx: str, log: str) -> dict[str, KernelCode]:
    """Kernels for a GPU by symbol, from the CUDA C++ of each, the PTX of all, and what ptxas said."""
    parts, used = _ptx_by_entry(ptx), gpu_resources(log)
    return {
        symbol: KernelCode({"CUDA C++": text, "PTX": parts.get(symbol, "")}, used.get(symbol, {}))
        for symbol, text in functions.items()
    }


def gpu_resources(log: str) -> dict[str, dict[str, str]]:
    """Registers, shared memory and spills of each kernel as `ptxas -v` tells them, architecture by architecture."""
    found: dict[str, dict[str, str]] = {}
    symbol = architecture = ""
    for line in log.splitlines():
        if entry := _COMPILING.search(line):
            symbol, architecture = entry.groups()
        elif symbol and (spills := _SPILLS.search(line)):
            stack, stores, loads = spills.groups()
            found.setdefault(symbol, {})[f"{architecture} spills"] = f"{stores} bytes out, {loads} in, stack {stack}"
        elif symbol and (used := _USED.search(line)):
            registers, shared = used.groups()
            found.setdefault(symbol, {})[f"{architecture} registers"] = registers
            found[symbol][f"{architecture} shared memory"] = f"{shared or 0} bytes"
    return found


def lasting_log(log: str) -> str:
    """The lines of the log that `gpu_resources` reads: the same for the same code, without times."""
    lines = (line for line in log.splitlines() if any(p.search(line) for p in (_COMPILING, _SPILLS, _USED)))
    return "".join(f"{line}\n" for line in lines)


def resource_report(code: Mapping[str, KernelCode]) -> str:
    """A line for each kernel."""
    lines = (f"{symbol}  " + ", ".join(f"{k}: {v}" for k, v in c.resources.items()) for symbol, c in code.items())
    return "".join(f"{line}\n" for line in lines)


def _ptx_by_entry(ptx: str) -> dict[str, str]:
    """The part of each entry, without what stands before the first one of its module."""
    found = list(_PTX_ENTRY.finditer(ptx))
    ends = [m.start() for m in found[1:]] + [len(ptx)]
    parts = {}
    for match, end in zip(found, ends, strict=True):
        text = ptx[match.start() : end]
        parts[match[1]] = text[: text.rfind("}") + 1]
    return parts
