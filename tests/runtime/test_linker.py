"""Object code in memory: sections placed, addresses patched, for both machines, and damaged objects refused."""

import ctypes
import random
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from onnxla.errors import ArtifactError
from onnxla.runtime import elf
from onnxla.runtime.elf import AARCH64, X86_64, read_object
from onnxla.runtime.linker import PAGE, Image
from onnxla.runtime.loader import NativeLibrary

ARM = "aarch64-unknown-linux-gnu"

CALLER = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 40], align 64
@counter = internal global i64 5
@shared = external global i64
declare i64 @callee(i64)
declare i64 @labs(i64)

define i64 @lookup(i64 %k) {
  %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %k
  %value = load i64, ptr %place
  ret i64 %value
}
define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  ret i64 %new
}
define i64 @twice(i64 %x) {
  %once = call i64 @callee(i64 %x)
  %result = call i64 @callee(i64 %once)
  ret i64 %result
}
define i64 @distance(i64 %x) {
  %result = call i64 @labs(i64 %x)
  ret i64 %result
}
define i64 @read_shared() {
  %value = load i64, ptr @shared
  ret i64 %value
}
define ptr @address_of_callee() {
  ret ptr @callee
}
"""
CALLEE = """
@shared = global i64 77
@zeros = internal global [1000 x i64] zeroinitializer
define i64 @callee(i64 %x) {
  %result = mul i64 %x, 3
  ret i64 %result
}
define i64 @sum_of_zeros() {
  %last = getelementptr [1000 x i64], ptr @zeros, i64 0, i64 999
  %value = load volatile i64, ptr %last
  ret i64 %value
}
"""


@cache
def compiled(ir: str, triple: str | None = None) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple or llvm.get_process_triple())
    return bytes(
        target.create_target_machine(opt=1, reloc="pic", codemodel="small").emit_object(llvm.parse_assembly(ir))
    )


def function(library: NativeLibrary, name: str) -> Callable[..., int]:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library[name])


def test_code_runs_and_reaches_its_data() -> None:
    library = NativeLibrary([compiled(CALLER), compiled(CALLEE)], {})
    assert [function(library, "lookup")(k) for k in range(4)] == [10, 20, 30, 40]
    assert [function(library, "count")(0) for _ in range(2)] == [6, 7]
    assert function(library, "twice")(7) == 63, "a call of another object"
    assert function(library, "distance")(-9) == 9, "a call of the process's own function"
    assert function(library, "read_shared")(0) == 77
    assert function(library, "sum_of_zeros")(0) == 0
    assert function(library, "address_of_callee")(0) == library["callee"]


def test_two_libraries_have_their_own_data() -> None:
    first, second = (NativeLibrary([compiled(CALLER), compiled(CALLEE)], {}) for _ in range(2))
    assert function(first, "count")(0) == 6
    assert function(second, "count")(0) == 6


def test_imports_come_before_the_process() -> None:
    callee = NativeLibrary([compiled(CALLEE)], {})
    addresses = {"callee": callee["callee"], "labs": callee["callee"], "shared": callee["shared"]}
    library = NativeLibrary([compiled(CALLER)], addresses)
    assert function(library, "twice")(1) == 9
    assert function(library, "distance")(-9) == -27
    assert function(library, "read_shared")(0) == 77


def test_code_is_never_writable_and_data_never_executable() -> None:
    library = NativeLibrary([compiled(CALLER), compiled(CALLEE)], {})
    rights = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, permissions, *_ = line.split()
        start, end = (int(edge, 16) for edge in span.split("-"))
        rights.update({name: permissions for name in ("lookup", "shared") if start <= library[name] < end})
    assert rights == {"lookup": "r-xp", "shared": "rw-p"}


def test_an_unknown_symbol_is_named() -> None:
    with pytest.raises(ArtifactError, match="cannot be linked: nothing here defines callee"):
        NativeLibrary([compiled(CALLER)], {"shared": 64})


def test_an_export_that_is_not_there_is_named() -> None:
    with pytest.raises(ArtifactError, match="does not define onnxla_run"):
        NativeLibrary([compiled(CALLEE)], {})["onnxla_run"]


def test_a_symbol_defined_twice_is_refused() -> None:
    with pytest.raises(ArtifactError, match="two objects define"):
        Image([compiled(CALLEE), compiled(CALLEE)])


def test_objects_for_two_machines_are_refused() -> None:
    with pytest.raises(ArtifactError, match="for 2 machines"):
        Image([compiled(CALLEE), compiled(CALLER, ARM)])


def test_thread_local_data_are_refused() -> None:
    with pytest.raises(ArtifactError, match="thread-local data"):
        read_object(compiled("@own = thread_local global i64 1"))


# AArch64: no such machine is at hand, so the patched instructions are decoded again


def words(image: bytes, start: int) -> Iterator[int]:
    yield from (w for (w,) in struct.iter_unpack("<I", image[start : start + 64]))


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def page_of(word: int, place: int) -> int:
    """The page that ADRP computes at `place`."""
    assert word & 0x9F000000 == 0x90000000, "ADRP"
    return (place & ~0xFFF) + (signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21) << 12)


def linked_for_arm() -> tuple[Image, bytes, int]:
    base = 0x7F12345 * 4096
    image = Image([compiled(CALLER, ARM), compiled(CALLEE, ARM)])
    return image, bytes(image.bytes_at(base, {"labs": 0x123456789ABC}.__getitem__)), base


def test_arm_calls_reach_the_callee() -> None:
    image, content, base = linked_for_arm()
    start = image.offset_of("twice")
    at, call = next((start + 4 * k, w) for k, w in enumerate(words(content, start)) if w >> 26 == 0b100101)
    assert at + 4 * signed(call & 0x3FFFFFF, 26) == image.offset_of("callee")


def test_arm_calls_of_the_process_go_through_a_stub() -> None:
    image, content, _ = linked_for_arm()
    start = image.offset_of("distance")
    at, jump = next((start + 4 * k, w) for k, w in enumerate(words(content, start)) if w >> 26 in (0b000101, 0b100101))
    stub = at + 4 * signed(jump & 0x3FFFFFF, 26)
    load, branch, address = struct.unpack_from("<IIQ", content, stub)
    assert (load, branch) == (0x58000050, 0xD61F0200), "ldr x16, #8; br x16"
    assert address == 0x123456789ABC


def test_arm_addresses_of_data_and_of_table_slots() -> None:
    image, content, base = linked_for_arm()
    start = image.offset_of("lookup")
    adrp, add = list(words(content, start))[:2]
    assert add & 0xFFC00000 == 0x91000000, "ADD"
    table = page_of(adrp, base + start) + (add >> 10 & 0xFFF) - base
    assert struct.unpack_from("<4q", content, table) == (10, 20, 30, 40)
    start = image.offset_of("address_of_callee")
    adrp, load = list(words(content, start))[:2]
    assert load & 0xFFC00000 == 0xF9400000, "LDR (64 bits)"
    slot = page_of(adrp, base + start) + 8 * (load >> 10 & 0xFFF) - base
    assert struct.unpack_from("<Q", content, slot) == (base + image.offset_of("callee"),)


def test_our_own_kernels_link_for_arm() -> None:
    """The relocations that the compiler's own code for the machine has are all known."""
    from onnxla.runtime.thread_pool_code import assemble_thread_pool

    image = Image([assemble_thread_pool(ARM)])
    assert image.machine == AARCH64
    assert len(image.bytes_at(PAGE, lambda name: PAGE * 1000)) == image.size


# Damage


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" + bytes(100), bytes(4096)])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError):
        read_object(data)


def test_a_relocation_of_unknown_kind_is_refused() -> None:
    file = read_object(compiled(CALLER, "x86_64-unknown-linux-gnu"))
    assert file.machine == X86_64
    code = bytearray(compiled(CALLER, "x86_64-unknown-linux-gnu"))
    row = elf._RELOCATION.pack(*file.relocations[0][1:2], 255, *file.relocations[0][3:])
    old = elf._RELOCATION.pack(*file.relocations[0][1:])
    with pytest.raises(ArtifactError, match="relocation of unknown kind 255"):
        Image([bytes(code.replace(old, row))])


def test_damaged_objects_give_an_image_or_an_artifact_error() -> None:
    """Never another exception, and never a write outside the image."""
    rng = random.Random(5)
    whole = compiled(CALLER), compiled(CALLEE)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(whole[0])
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = rng.randrange(len(damaged))
            damaged[place : place + rng.choice((1, 4, 8))] = rng.randbytes(rng.choice((1, 4, 8)))
        try:
            image = Image([bytes(damaged), whole[1]])
            assert len(image.bytes_at(PAGE, lambda name: PAGE)) == image.size
        except ArtifactError:
            refused += 1
    assert 100 < refused < 2000
