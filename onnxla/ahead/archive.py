"""Static libraries: the `ar` format with GNU's symbol index, so that linkers find members without ranlib."""

import struct
from collections.abc import Mapping

from onnxla.runtime.elf import read_object

_MAGIC = b"!<arch>\n"


def archive(members: Mapping[str, bytes]) -> bytes:
    """A library of object files by name (at most 15 characters). Equal members give equal bytes."""
    symbols = [
        (symbol.name, k)
        for k, data in enumerate(members.values())
        for symbol in read_object(data).symbols
        if symbol.is_global and symbol.section is not None
    ]
    names = b"".join(name.encode() + b"\0" for name, _ in symbols)
    index_size = 4 + 4 * len(symbols) + len(names)
    places = []
    end = len(_MAGIC) + 60 + index_size + index_size % 2
    for data in members.values():
        places.append(end)
        end += 60 + len(data) + len(data) % 2
    index = struct.pack(f">I{len(symbols)}I", len(symbols), *(places[k] for _, k in symbols)) + names
    return _MAGIC + b"".join([_member("/", index), *(_member(f"{name}/", data) for name, data in members.items())])


def _member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode()
    assert len(header) == 60, f"the member name {name} is too long"
    return header + data + b"\n" * (len(data) % 2)
