"""How operators and their domains are called."""


def normal_domain(domain: str) -> str:
    """The standard's two spellings of its own domain, `ai.onnx` and the empty string, as the empty string."""
    return "" if domain == "ai.onnx" else domain


def qualified_name(name: str, domain: str) -> str:
    """`Conv`, `com.microsoft.FusedConv`."""
    return f"{domain}.{name}" if domain else name
