"""Put the page together: one file that asks nobody for anything.

Names come from models of strangers. They travel as JSON in which no character ends a script, and the page's own script
puts them into the document as text only. A Content-Security-Policy allows that script and that style, by their
digests, and nothing else.
"""

import base64
import hashlib
import html
import json
import re
import zlib
from functools import cache
from importlib import resources
from typing import Any

from onnxla.page.document import Document

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Control characters but newline and tab, those that reverse or hide text, and halves of surrogate pairs."""
_MARKUP = {ord(c): f"\\u{ord(c):04x}" for c in "<>&'\u2028\u2029"}


def page_html(document: Document) -> str:
    """The page. Equal documents give equal pages."""
    script, style = _template("page.js"), _template("page.css")
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy, quote=True),
        "title": html.escape(visible(str(document.data["title"])), quote=True),
        "style": style,
        "data": _json(document.data),
        "texts": _packed(document.texts),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], _template("page.html"))


def visible(text: str) -> str:
    """`text` with characters that act on a reader spelled out, as `\\x1b`."""
    return _UNSAFE.sub(lambda m: m[0].encode("unicode_escape", "surrogatepass").decode(), text)


def _json(value: Any) -> str:
    """JSON that may stand inside a script element: in strings, nothing that HTML gives a meaning to."""
    return json.dumps(_visible(value), ensure_ascii=True, separators=(",", ":")).translate(_MARKUP)


def _packed(texts: Any) -> str:
    data = json.dumps(_visible(texts), ensure_ascii=True, separators=(",", ":")).encode()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode()


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list | tuple) else value


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _template(name: str) -> str:
    return resources.files("onnxla.page").joinpath("template", name).read_text(encoding="utf-8")
