"""Object files for C linkers: symbols renamed, and data as an object (ELF-64; System V ABI, chapter 4)."""

import struct
from collections.abc import Callable

from onnxla.runtime.elf import HEADER, SECTION_HEADER, SYMBOL, SYMTAB

_RELOCATABLE, _CURRENT = 1, 1
_PROGBITS, _STRTAB = 1, 3
_ALLOC = 2
_GLOBAL_OBJECT = 1 << 4 | 1
_HIDDEN = 2
_ALIGNMENT = 64


def rename_symbols(data: bytes, new_name: Callable[[str], str]) -> bytes:
    """The object with every named symbol called `new_name(old)`. `data` is an object that `read_object` takes."""
    result = bytearray(data)
    fields = HEADER.unpack_from(data)
    table, count = fields[9], fields[15]
    headers = [list(SECTION_HEADER.unpack_from(data, table + k * SECTION_HEADER.size)) for k in range(count)]
    for header in headers:
        if header[1] != SYMTAB:
            continue
        names_at = header[6]
        offset, size = headers[names_at][4:6]
        names = bytearray(data[offset : offset + size])
        for place in range(header[4], header[4] + header[5], SYMBOL.size):
            (start,) = struct.unpack_from("<I", data, place)
            old = bytes(names[start : names.index(0, start)]).decode()
            new = new_name(old)
            if new != old:
                struct.pack_into("<I", result, place, len(names))
                names += new.encode() + b"\0"
        # the longer table goes to the end; section names, which may share it, keep their places in it
        headers[names_at][4:6] = len(result), len(names)
        result += names
        SECTION_HEADER.pack_into(result, table + names_at * SECTION_HEADER.size, *headers[names_at])
    return bytes(result)


def flags_of(data: bytes) -> int:
    """The flags of an object's header: on RISC-V its ABI, in which all objects of a program must agree."""
    flags: int = HEADER.unpack_from(data)[10]
    return flags


def data_object(machine: int, flags: int, symbol: str, data: bytes | memoryview) -> bytes:
    """An object that defines `symbol` as read-only data, aligned to 64 bytes, hidden from users of a shared library."""
    sections = [b"", b".rodata", b".symtab", b".strtab", b".note.GNU-stack"]
    names = b"\0".join([*sections, symbol.encode(), b""])
    starts = {name: names.index(name + b"\0") if name else 0 for name in (*sections, symbol.encode())}
    symbols = SYMBOL.pack(0, 0, 0, 0, 0, 0) + SYMBOL.pack(
        starts[symbol.encode()], _GLOBAL_OBJECT, _HIDDEN, 1, 0, len(data)
    )
    symbols_at = _ALIGNMENT + len(data) + -len(data) % 8
    names_at = symbols_at + len(symbols)
    table = names_at + len(names) + -(names_at + len(names)) % 8
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (starts[b".rodata"], _PROGBITS, _ALLOC, 0, _ALIGNMENT, len(data), 0, 0, _ALIGNMENT, 0),
        (starts[b".symtab"], SYMTAB, 0, 0, symbols_at, len(symbols), 3, 1, 8, SYMBOL.size),
        (starts[b".strtab"], _STRTAB, 0, 0, names_at, len(names), 0, 0, 1, 0),
        (starts[b".note.GNU-stack"], _PROGBITS, 0, 0, names_at, 0, 0, 0, 1, 0),
    ]
    sizes = (HEADER.size, 0, 0, SECTION_HEADER.size, len(rows), 3)
    header = HEADER.pack(b"\x7fELF", 2, 1, _CURRENT, _RELOCATABLE, machine, 1, 0, 0, table, flags, *sizes)
    result = bytearray(table)
    for place, part in ((0, header), (_ALIGNMENT, data), (symbols_at, symbols), (names_at, names)):
        result[place : place + len(part)] = part
    return bytes(result + b"".join(SECTION_HEADER.pack(*row) for row in rows))
