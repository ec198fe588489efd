"""LLVM IR that asks the processor whether code may run on it: a C program has no onnxla to ask.

Only x86-64 has levels that code may lack; a kernel for AVX-512 would end in SIGILL on an older CPU. The answer comes
from `cpuid` and `xgetbv` (Intel's manual, volume 2A, CPUID; volume 1, chapter 13), without a library's help, and is
kept. Features of instructions that no kernel has (`rdpid`, `clwb`, ...) are not asked for.
"""

from collections.abc import Iterable

_EAX, _EBX, _ECX, _EDX = range(4)
_LEAF_1, _LEAF_7, _LEAF_7_1, _EXTENDED = (1, 0), (7, 0), (7, 1), (0x80000001, 0)
_Place = tuple[tuple[int, int], int]

_BITS: dict[_Place, dict[str, int]] = {
    (_LEAF_1, _ECX): {
        **{"sse3": 0, "ssse3": 9, "fma": 12, "cx16": 13, "sse4.1": 19, "sse4.2": 20, "movbe": 22, "popcnt": 23},
        **{"xsave": 26, "avx": 28, "f16c": 29},
    },
    (_LEAF_7, _EBX): {
        **{"bmi": 3, "avx2": 5, "bmi2": 8, "avx512f": 16, "avx512dq": 17, "avx512ifma": 21, "avx512cd": 28},
        **{"avx512bw": 30, "avx512vl": 31},
    },
    (_LEAF_7, _ECX): {
        **{"avx512vbmi": 1, "avx512vbmi2": 6, "gfni": 8, "vaes": 9, "vpclmulqdq": 10, "avx512vnni": 11},
        **{"avx512bitalg": 12, "avx512vpopcntdq": 14},
    },
    (_LEAF_7, _EDX): {"amx-bf16": 22, "avx512fp16": 23, "amx-tile": 24, "amx-int8": 25},
    (_LEAF_7_1, _EAX): {"avxvnni": 4, "avx512bf16": 5, "avxifma": 23},
    (_EXTENDED, _ECX): {"sahf": 0, "lzcnt": 5, "sse4a": 6, "xop": 11, "fma4": 16},
}
_OSXSAVE = 1 << 27
_YMM, _ZMM, _TILES = 0x6, 0xE0, 0x60000
"""What the system must keep of a thread, bits of XCR0."""

_CPUID = (
    "call {{ i32, i32, i32, i32 }} asm sideeffect "
    '"cpuid", "={{ax}},={{bx}},={{cx}},={{dx}},{{ax}},{{cx}},~{{dirflag}},~{{fpsr}},~{{flags}}"(i32 {0}, i32 {1})'
)
_TEXT = """
@{name}_cpu_state = internal global i32 0

define internal i1 @{name}_ask_cpu() noinline {{
entry:
{asking}
no:
  ret i1 false
}}

define i32 @{name}_cpu_fits() {{
entry:
  %known = load atomic i32, ptr @{name}_cpu_state monotonic, align 4
  %is.known = icmp ne i32 %known, 0
  br i1 %is.known, label %tell, label %ask
ask:
  %fits = call i1 @{name}_ask_cpu()
  %state = select i1 %fits, i32 1, i32 2
  store atomic i32 %state, ptr @{name}_cpu_state monotonic, align 4
  br label %tell
tell:
  %answer = phi i32 [ %known, %entry ], [ %state, %ask ]
  %yes = icmp eq i32 %answer, 1
  %result = zext i1 %yes to i32
  ret i32 %result
}}
"""


def cpu_check(name: str, features: Iterable[str], is_x86: bool) -> str:
    """`i32 @NAME_cpu_fits()`: 1 where the CPU and the system have `features`, else 0. To be compiled for any x86-64."""
    wanted = set(features) if is_x86 else set()
    lines: list[str] = []
    for (leaf, register), bits in _BITS.items():
        mask = sum(1 << bit for feature, bit in bits.items() if feature in wanted)
        if (leaf, register) == (_LEAF_1, _ECX) and "avx" in wanted:
            mask |= _OSXSAVE
        if mask:
            lines += _require_leaf(len(lines), leaf, register, mask)
    saved = _YMM * ("avx" in wanted) | _ZMM * ("avx512f" in wanted) | _TILES * ("amx-tile" in wanted)
    if saved:
        lines += _require_saved(len(lines), saved)
    return _TEXT.format(name=name, asking="\n".join([*lines, "  ret i1 true"]))


def _require_leaf(n: int, leaf: tuple[int, int], register: int, mask: int) -> list[str]:
    """Go on where a register of a leaf, which the CPU must have, has all bits of `mask`."""
    begin, last, subleaf = leaf[0], leaf[0] & 0x80000000, leaf[1]
    lines = [
        f"  %most{n} = {_CPUID.format(_signed(last), 0)}",
        f"  %largest{n} = extractvalue {{ i32, i32, i32, i32 }} %most{n}, 0",
        f"  %has{n} = icmp uge i32 %largest{n}, {_signed(begin)}",
        f"  br i1 %has{n}, label %leaf{n}, label %no",
        f"leaf{n}:",
    ]
    if subleaf:
        lines += [
            f"  %outer{n} = {_CPUID.format(begin, 0)}",
            f"  %subleaves{n} = extractvalue {{ i32, i32, i32, i32 }} %outer{n}, 0",
            f"  %deep{n} = icmp uge i32 %subleaves{n}, {subleaf}",
            f"  br i1 %deep{n}, label %subleaf{n}, label %no",
            f"subleaf{n}:",
        ]
    return lines + [
        f"  %all{n} = {_CPUID.format(_signed(begin), subleaf)}",
        f"  %word{n} = extractvalue {{ i32, i32, i32, i32 }} %all{n}, {register}",
        f"  %bits{n} = and i32 %word{n}, {_signed(mask)}",
        f"  %good{n} = icmp eq i32 %bits{n}, {_signed(mask)}",
        f"  br i1 %good{n}, label %next{n}, label %no",
        f"next{n}:",
    ]


def _require_saved(n: int, mask: int) -> list[str]:
    """Go on where the system saves the registers; `xgetbv` is there, since OSXSAVE was asked for."""
    return [
        f'  %xcr{n} = call {{ i32, i32 }} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}},~{{dirflag}},~{{fpsr}},'
        f'~{{flags}}"(i32 0)',
        f"  %low{n} = extractvalue {{ i32, i32 }} %xcr{n}, 0",
        f"  %kept{n} = and i32 %low{n}, {mask}",
        f"  %saved{n} = icmp eq i32 %kept{n}, {mask}",
        f"  br i1 %saved{n}, label %next{n}, label %no",
        f"next{n}:",
    ]


def _signed(value: int) -> int:
    """As LLVM's text writes an i32."""
    return value - (1 << 32) if value >= 1 << 31 else value
