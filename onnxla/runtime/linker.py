"""Link relocatable objects to one image of memory: place sections, find symbols, patch addresses.

An image has two parts, each a whole number of pages: what is only read and run (code, constants, the table of far
addresses), then what is written. Code reaches everything in the image by its distance. A symbol of another image or of
the process may be too far for that: calls of it go through a stub, loads of its address through a table (the GOT).

Sources: the psABIs of x86-64 (chapter 4.4) and AArch64 (ELF for the Arm 64-bit Architecture, chapter 5.7).
"""

import mmap
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from onnxla.errors import ArtifactError
from onnxla.runtime.elf import AARCH64, X86_64, ObjectFile, Relocation, Symbol, read_object

PAGE = mmap.PAGESIZE
_MAX_SIZE = 1 << 30
_SLOT = 8
_STUBS = {
    X86_64: bytes.fromhex("ff2500000000 0000000000000000"),  # jmp *[rip + 0]; the address
    AARCH64: bytes.fromhex("50000058 00021fd6 0000000000000000"),  # ldr x16, #8; br x16; the address
}
_STUB_STRIDE = 16

Patch = Callable[[bytearray, int, int, int], None]
"""(image, offset in it, address to write S + A, address of the place P)"""


class Image:
    """The layout of some objects. `size` bytes at an address that is a multiple of `PAGE` will hold it.

    Raises ArtifactError where the objects do not fit together or ask for something unknown.
    """

    def __init__(self, objects: Iterable[bytes]) -> None:
        self._objects = [read_object(data) for data in objects]
        machines = {o.machine for o in self._objects}
        if len(machines) != 1 or not machines <= set(_KINDS):
            raise ArtifactError(f"the object code is for {len(machines)} machines, or an unknown one")
        (self.machine,) = machines
        self._kinds = _KINDS[self.machine]
        self._globals = _global_symbols(self._objects)
        self._slots: dict[str, int] = {}
        self._stubs: dict[str, int] = {}
        for k, file in enumerate(self._objects):
            for relocation in file.relocations:
                self._reserve(k, relocation)
        self._places: dict[tuple[int, int], int] = {}
        end = self._place_sections(0, writable=False)
        self._slots_at = _rounded(end, _STUB_STRIDE)
        self._stubs_at = _rounded(self._slots_at + _SLOT * len(self._slots), _STUB_STRIDE)
        self.read_only_size = _rounded(self._stubs_at + _STUB_STRIDE * len(self._stubs), PAGE)
        self.size = _rounded(self._place_sections(self.read_only_size, writable=True), PAGE)
        if self.size > _MAX_SIZE:
            raise ArtifactError(f"the object code takes {self.size} bytes, more than {_MAX_SIZE}")

    def bytes_at(self, base: int, find: Callable[[str], int]) -> bytearray:
        """The image for address `base`; `find` gives the address of a symbol that no object defines."""
        image = bytearray(self.size)
        for (k, index), place in self._places.items():
            section = self._objects[k].sections[index]
            if section.data is not None:
                image[place : place + section.size] = section.data
        self._write_slots_and_stubs(image, base, find)
        for k, file in enumerate(self._objects):
            for relocation in file.relocations:
                self._patch(image, base, k, relocation)
        return image

    def offset_of(self, name: str) -> int:
        """Where in the image an exported symbol lies."""
        if name not in self._globals:
            raise ArtifactError(f"the object code does not define {name}")
        k, symbol = self._globals[name]
        return self._offset(k, symbol)

    def _reserve(self, k: int, relocation: Relocation) -> None:
        """Give a symbol its slot or stub. Checks the relocation once and for all."""
        file = self._objects[k]
        if relocation.symbol >= len(file.symbols):
            raise ArtifactError("the object code is damaged: a relocation names no symbol")
        symbol = file.symbols[relocation.symbol]
        if relocation.kind not in self._kinds:
            raise ArtifactError(f"the object code has a relocation of unknown kind {relocation.kind} ({symbol.name})")
        _, width, way = self._kinds[relocation.kind]
        if not 0 <= relocation.offset <= file.sections[relocation.section].size - width:
            raise ArtifactError(f"the object code is damaged: a relocation of {symbol.name} is outside its section")
        if way == "slot":
            self._slots.setdefault(symbol.name, len(self._slots))
        elif way == "call" and symbol.section is None and symbol.name not in self._globals:
            self._stubs.setdefault(symbol.name, len(self._stubs))

    def _place_sections(self, end: int, *, writable: bool) -> int:
        for k, file in enumerate(self._objects):
            for index, section in file.sections.items():
                if section.writable == writable:
                    if section.alignment > PAGE:
                        raise ArtifactError(f"section {section.name} asks for an alignment of {section.alignment}")
                    self._places[k, index] = _rounded(end, section.alignment)
                    end = self._places[k, index] + section.size
        return end

    def _write_slots_and_stubs(self, image: bytearray, base: int, find: Callable[[str], int]) -> None:
        for name, n in self._slots.items():
            address = base + self.offset_of(name) if name in self._globals else find(name)
            struct.pack_into("<Q", image, self._slots_at + _SLOT * n, address)
        code = _STUBS[self.machine]
        for name, n in self._stubs.items():
            at = self._stubs_at + _STUB_STRIDE * n
            image[at : at + len(code)] = code
            struct.pack_into("<Q", image, at + len(code) - _SLOT, find(name))

    def _patch(self, image: bytearray, base: int, k: int, relocation: Relocation) -> None:
        symbol = self._objects[k].symbols[relocation.symbol]
        patch, _, way = self._kinds[relocation.kind]
        if way == "slot":
            target = self._slots_at + _SLOT * self._slots[symbol.name]
        elif symbol.section is not None:
            target = self._offset(k, symbol)
        elif symbol.name in self._globals:
            target = self.offset_of(symbol.name)
        elif symbol.name in self._stubs:
            target = self._stubs_at + _STUB_STRIDE * self._stubs[symbol.name]
        else:
            raise ArtifactError(f"the object code reads {symbol.name}, which no part of it defines")
        place = self._places[k, relocation.section] + relocation.offset
        try:
            patch(image, place, base + target + relocation.addend, base + place)
        except (struct.error, OverflowError) as error:
            raise ArtifactError(f"{symbol.name} is out of reach of the code that uses it") from error

    def _offset(self, k: int, symbol: Symbol) -> int:
        assert symbol.section is not None
        section = self._objects[k].sections.get(symbol.section)
        if section is None or symbol.value > section.size:
            raise ArtifactError(f"the object code is damaged: {symbol.name} is in no section")
        return self._places[k, symbol.section] + symbol.value


def _global_symbols(objects: list[ObjectFile]) -> dict[str, tuple[int, Symbol]]:
    found: dict[str, tuple[int, Symbol]] = {}
    for k, file in enumerate(objects):
        for symbol in file.symbols:
            if symbol.is_global and symbol.section is not None:
                if symbol.name in found:
                    raise ArtifactError(f"two objects define {symbol.name}")
                found[symbol.name] = (k, symbol)
    return found


def _rounded(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


# How an address is written


def _absolute(image: bytearray, at: int, target: int, place: int) -> None:
    struct.pack_into("<Q", image, at, target)


def _relative(form: str, image: bytearray, at: int, target: int, place: int) -> None:
    struct.pack_into(form, image, at, target - place)


def _arm_branch(image: bytearray, at: int, target: int, place: int) -> None:
    """26 bits of a signed distance in words."""
    distance = (target - place) >> 2
    if not -(1 << 25) <= distance < 1 << 25:
        raise OverflowError
    _arm_insert(image, at, distance & 0x3FFFFFF)


def _arm_page(image: bytearray, at: int, target: int, place: int) -> None:
    """ADRP: 21 bits of a signed distance in pages of 4096 bytes, the two lowest apart."""
    pages = (target >> 12) - (place >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise OverflowError
    _arm_insert(image, at, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _arm_low(shift: int, image: bytearray, at: int, target: int, place: int) -> None:
    """The address within its page, in units of 2**shift bytes."""
    _arm_insert(image, at, (target & 0xFFF) >> shift << 10)


def _arm_insert(image: bytearray, at: int, bits: int) -> None:
    """Set a field of an instruction, which the compiler left zero."""
    (word,) = struct.unpack_from("<I", image, at)
    struct.pack_into("<I", image, at, word | bits)


_KINDS: Mapping[int, Mapping[int, tuple[Patch, int, str]]] = {
    X86_64: {
        1: (_absolute, 8, "data"),  # R_X86_64_64
        2: (partial(_relative, "<i"), 4, "data"),  # PC32
        4: (partial(_relative, "<i"), 4, "call"),  # PLT32
        9: (partial(_relative, "<i"), 4, "slot"),  # GOTPCREL
        24: (partial(_relative, "<q"), 8, "data"),  # PC64
        41: (partial(_relative, "<i"), 4, "slot"),  # GOTPCRELX
        42: (partial(_relative, "<i"), 4, "slot"),  # REX_GOTPCRELX
    },
    AARCH64: {
        257: (_absolute, 8, "data"),  # R_AARCH64_ABS64
        260: (partial(_relative, "<q"), 8, "data"),  # PREL64
        261: (partial(_relative, "<i"), 4, "data"),  # PREL32
        275: (_arm_page, 4, "data"),  # ADR_PREL_PG_HI21
        277: (partial(_arm_low, 0), 4, "data"),  # ADD_ABS_LO12_NC
        278: (partial(_arm_low, 0), 4, "data"),  # LDST8_ABS_LO12_NC
        282: (_arm_branch, 4, "call"),  # JUMP26
        283: (_arm_branch, 4, "call"),  # CALL26
        284: (partial(_arm_low, 1), 4, "data"),  # LDST16_ABS_LO12_NC
        285: (partial(_arm_low, 2), 4, "data"),  # LDST32_ABS_LO12_NC
        286: (partial(_arm_low, 3), 4, "data"),  # LDST64_ABS_LO12_NC
        299: (partial(_arm_low, 4), 4, "data"),  # LDST128_ABS_LO12_NC
        311: (_arm_page, 4, "slot"),  # ADR_GOT_PAGE
        312: (partial(_arm_low, 3), 4, "slot"),  # LD64_GOT_LO12_NC
    },
}
"""By machine and relocation kind: how to write, how many bytes, and what is written about: the symbol itself, a call
of it, or its slot in the table."""
