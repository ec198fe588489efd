"""Names that are safe in HLO text, in LLVM IR, in C and as files, whatever the user's model calls its values."""

import re

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 100


def safe_name(wish: str, otherwise: str = "value") -> str:
    """`wish` in the alphabet `[A-Za-z0-9_.-]`, starting with a letter or `_`; `otherwise` where nothing is left."""
    name = _UNSAFE.sub("_", wish[: 4 * _LONGEST]).lstrip("_-.")[:_LONGEST] or otherwise
    return name if name[0].isalpha() else f"_{name}"


class UniqueNames:
    """Hands out each name once: `add`, `add.1`, `add.2`."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._last: dict[str, int] = {}

    def give(self, wish: str, otherwise: str = "value") -> str:
        """A safe name close to `wish` that was not given before."""
        base = name = safe_name(wish, otherwise)
        while name in self._given:
            self._last[base] = self._last.get(base, 0) + 1
            name = f"{base}.{self._last[base]}"
        self._given.add(name)
        return name
