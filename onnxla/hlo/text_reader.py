"""A cursor over HLO text: skips space and comments, and reports an error with the line it stands in.

Everything here is iterative and takes time linear in the text, whatever the text is.
"""

import re
from typing import NoReturn

from onnxla.errors import HloError, OnnxlaError

_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|/\*(?:.*?\*/|.*)|//[^\n]*', re.DOTALL)
_SPACE = re.compile(r"(?a)\s*")
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|[{}()]')
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_END_OR_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[\n{}(]')
_LINE_SHOWN = 100


class TextReader:
    """`at` is the offset of what is read next; it stands on no space or comment."""

    def __init__(self, text: str) -> None:
        self._shown = text
        self.text = _COMMENT_OR_STRING.sub(_blank_comment, text)
        self.at = 0
        self._skip_space()

    def fail(self, cause: str, at: int | None = None, kind: type[OnnxlaError] = HloError) -> NoReturn:
        """Raise `kind` with the line and column of `at`, and the line itself."""
        raise kind(f"{cause}\n{self.place(self.at if at is None else at)}")

    def place(self, at: int) -> str:
        """The line that `at` stands in, and a mark below it."""
        start = self._shown.rfind("\n", 0, at) + 1
        end = self._shown.find("\n", start)
        line, column = self._shown[start : end if end >= 0 else None], at - start
        number = self._shown.count("\n", 0, start) + 1
        first = max(0, min(column - _LINE_SHOWN // 2, len(line) - _LINE_SHOWN))
        shown = "".join(c if c.isprintable() else " " for c in line[first : first + _LINE_SHOWN])
        return f"  line {number}, column {column + 1}\n  {shown}\n  {' ' * (column - first)}^"

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.text)

    def starts_with(self, words: str) -> bool:
        return self.text.startswith(words, self.at)

    def take(self, words: str) -> bool:
        """Step over `words` where they come next."""
        if not self.starts_with(words):
            return False
        self._step(self.at + len(words))
        return True

    def expect(self, words: str, where: str = "") -> None:
        if not self.take(words):
            self.fail(f"expected {words!r}{' ' + where if where else ''}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over a match of `pattern`, or stay."""
        found = pattern.match(self.text, self.at)
        if found:
            self._step(found.end())
        return found

    def expect_match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        return self.match(pattern) or self.fail(f"expected {what}")

    def bracketed(self) -> str:
        """Step over the brackets that open here, of any depth; their text with them."""
        start, depth = self.at, 0
        for found in _BRACKETS.finditer(self.text, start):
            mark = found[0]
            if mark[0] == '"' and not _STRING.fullmatch(mark):
                self.fail("this string does not end in its line", found.start())
            depth += 1 if mark in "{(" else -1 if mark in "})" else 0
            if depth == 0:
                self._step(found.end())
                return self.text[start : found.end()]
        self.fail("this bracket is never closed")

    def quoted(self) -> str:
        """Step over a string; its text with the quotes."""
        return self.expect_match(_STRING, "a string that ends in its line")[0]

    def skip_line(self, start: int) -> None:
        """Step from `start` to the end of its line, of the brackets that open there, or of the block around."""
        at = start
        while (found := _END_OR_BRACKET.search(self.text, at)) and found[0] not in ("\n", "}"):
            at = found.end()
            if found[0] in ("{", "("):
                self.at = found.start()
                at = found.start() + len(self.bracketed())
        self._step(found.start() if found else len(self.text))

    def _step(self, to: int) -> None:
        self.at = to
        self._skip_space()

    def _skip_space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at


def _blank_comment(found: re.Match[str]) -> str:
    """Spaces for a comment, so that offsets stay; a string as it is."""
    return found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0])
