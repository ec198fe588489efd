"""How large is the stack of this thread? Kernels keep up to about 1 MB on it, and a thread may have only 16 kB."""

import ctypes
import threading
from typing import Any

ENOUGH_BYTES = 2 << 20
"""For any kernel, and what is on the stack already."""
_ATTRIBUTES_BYTES = 128
_this_thread = threading.local()


def has_large_stack() -> bool:
    """Whether kernels may run on this thread's stack. Asked of the system once for each thread."""
    try:
        known: bool = _this_thread.is_large
    except AttributeError:
        known = _this_thread.is_large = _stack_bytes() >= ENOUGH_BYTES
    return known


def _stack_bytes() -> int:
    """Where the system does not tell (other libraries than Linux's have no such function), a guess: the usual size."""
    libc: Any = ctypes.CDLL(None)
    attributes = ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    try:
        libc.pthread_self.restype = ctypes.c_void_p
        if libc.pthread_getattr_np(ctypes.c_void_p(libc.pthread_self()), attributes):
            return ENOUGH_BYTES
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        libc.pthread_attr_getstack(attributes, ctypes.byref(address), ctypes.byref(size))
        libc.pthread_attr_destroy(attributes)
    except AttributeError:
        return ENOUGH_BYTES
    return size.value
