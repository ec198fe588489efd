"""Read relocatable object files: ELF-64, little-endian, as LLVM writes them for Linux.

Source: System V ABI, chapter 4 (object files). Only what a linker needs is kept. Every offset is checked, so damaged
bytes raise ArtifactError and nothing else.
"""

import struct
from typing import NamedTuple

from onnxla.errors import ArtifactError

X86_64, AARCH64 = 62, 183
"""Values of e_machine."""
_RELOCATABLE = 1
SYMTAB, _RELA, _NOBITS = 2, 4, 8
_WRITE, _ALLOC, _TLS = 0x1, 0x2, 0x400
_UNDEFINED, _ABSOLUTE, _RESERVED = 0, 0xFFF1, 0xFF00
_MAX_SIZE = 1 << 28
"""Of what is all zeros; the rest is as large as the file."""
HEADER = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")
"""magic, class, order, version, type, machine, version, entry, segments, sections, flags, and six sizes and counts."""
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
"""name, type, flags, address, offset, size, link, info, alignment, entry size."""
SYMBOL = struct.Struct("<IBBHQQ")
"""name, binding and type, visibility, section, value, size."""
_RELOCATION = struct.Struct("<QIIq")


class Section(NamedTuple):
    """A section that is in memory when the code runs. `data` is None where it is all zeros."""

    name: str
    size: int
    alignment: int
    writable: bool
    data: bytes | None


class Symbol(NamedTuple):
    """`section` is the index of the section that defines it; None: another object, or the process, defines it."""

    name: str
    section: int | None
    value: int
    is_global: bool


class Relocation(NamedTuple):
    """At `offset` of `section`, write the address of `symbol` plus `addend` in the manner of `kind`."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


class ObjectFile(NamedTuple):
    """One object file; sections by their index in it."""

    machine: int
    sections: dict[int, Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


def read_object(data: bytes) -> ObjectFile:
    """Raises ArtifactError for bytes that are no relocatable object file, or need what no code of ours needs."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise ArtifactError(f"the object code is damaged: {error}") from error


def _read(data: bytes) -> ObjectFile:
    magic, width, order, _, kind, machine, *rest = HEADER.unpack_from(data)
    if (magic, width, order, kind) != (b"\x7fELF", 2, 1, _RELOCATABLE):
        raise ArtifactError("the object code is not a relocatable ELF-64 object")
    table, count, names_at = rest[3], rest[9], rest[10]
    headers = [SECTION_HEADER.unpack_from(data, table + k * SECTION_HEADER.size) for k in range(count)]
    names = _bytes(data, headers[names_at])
    sections, symbols, relocations = {}, [], []
    for k, header in enumerate(headers):
        name, kind, flags, _, _, size, _, _, alignment, _ = header
        if kind == SYMTAB:
            symbols = _symbols(_bytes(data, header), _bytes(data, headers[header[6]]))
        elif flags & _TLS:
            raise ArtifactError(f"the object code has thread-local data ({_text(names, name)})")
        elif flags & _ALLOC and not _is_unwind_table(_text(names, name)):
            if kind == _NOBITS and size > _MAX_SIZE:
                raise ValueError(f"a section of {size} bytes")
            content = None if kind == _NOBITS else _bytes(data, header)
            sections[k] = Section(_text(names, name), size, max(alignment, 1), bool(flags & _WRITE), content)
    for header in headers:
        if header[1] == _RELA and header[7] in sections:
            rows = _RELOCATION.iter_unpack(_bytes(data, header))
            relocations += [
                Relocation(header[7], offset, kind, symbol, addend) for offset, kind, symbol, addend in rows
            ]
    return ObjectFile(machine, sections, symbols, relocations)


def _is_unwind_table(name: str) -> bool:
    """Nothing throws through our code, and nobody registers its tables."""
    return name == ".eh_frame"


def _bytes(data: bytes, header: tuple[int, ...]) -> bytes:
    offset, size = header[4], header[5]
    if offset + size > len(data):
        raise ValueError(f"a section of {size} bytes at {offset} does not fit")
    return data[offset : offset + size]


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()


def _symbols(table: bytes, names: bytes) -> list[Symbol]:
    symbols = []
    for name, info, _, section, value, _ in SYMBOL.iter_unpack(table):
        if section >= _RESERVED:
            # file names are absolute; anything else that is in no section, as common data, is nothing LLVM makes
            if section != _ABSOLUTE:
                raise ArtifactError(f"the object code has a symbol of an unknown kind ({_text(names, name)})")
            section = _UNDEFINED
        symbols.append(Symbol(_text(names, name), section or None, value, info >> 4 != 0))
    return symbols
