"""A stand-in for `cuda.bindings.driver`, the CUDA driver, on which `CudaDevice` runs whole models without a GPU.

- Every call goes to the real bindings first, which convert all arguments and then fail to find libcuda: a name, a
  number of arguments or a type that they do not take is an error here. How many values come back is read off their
  documentation. On a machine that has a driver (where such a call would be carried out) the signatures alone are held.
- Work waits in its stream and is done as late as it may be: when somebody waits for it, in the order that events impose
  and no more. What forgets to wait reads what was there before.
- Kernels run in the PTX simulator. Faults, failing calls and kernels that fail afterwards can be asked for.
- Contexts, freed memory, captured streams and graphs are held to their rules.
"""

import ctypes
import gc
import inspect
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from cuda.bindings import driver as real

from tests.gpu.ptx_memory import GlobalMemory
from tests.gpu.ptx_simulator import simulate
from tests.gpu.ptx_text import PtxKernel, parse_ptx

_SUCCESS = real.CUresult.CUDA_SUCCESS
_ANYWHERE = {
    *("cuInit", "cuDeviceGet", "cuDeviceGetCount", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem"),
    *("cuDriverGetVersion", "cuGetErrorString", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease"),
    *("cuCtxPushCurrent", "cuCtxPopCurrent", "cuEventDestroy", "cuStreamDestroy"),
}
"""Calls that need no current context."""
LEGACY = 1
MINE = 7001
"""A stream of somebody else, which is there from the beginning."""

_SEARCH = threading.local()
"""Whether this thread may have the bindings search for libcuda just now, under a lock: by a call of ours, or while
memory is collected, which may be amid a search of anybody's. What a finalizer asks then must not have them search."""


def _note_collection(phase: str, info: Mapping[str, Any]) -> None:
    _SEARCH.collecting = phase == "start"


gc.callbacks.append(_note_collection)


def is_collecting() -> bool:
    """Whether this thread collects memory just now."""
    return getattr(_SEARCH, "collecting", False)


Work = Callable[[], None]


class Misuse(AssertionError):
    """A call that the real driver would not carry out as it is meant."""


def has_driver() -> bool:
    """Whether this machine has a CUDA driver."""
    try:
        real.cuInit(0)
    except RuntimeError:
        return False
    return True


class _Stream:
    def __init__(self) -> None:
        self.waiting: deque[tuple[int, Work]] = deque()
        """What was asked for and is not done, numbered in the order of asking."""
        self.captured: list[Any] | None = None


class _Event:
    def __init__(self) -> None:
        self.stream: _Stream | None = None
        self.number = 0


class _Node:
    """A launch or a copy in a graph."""

    def __init__(self, work: Work, launch: Sequence[Any] | None = None) -> None:
        self.work, self.launch = work, launch


class PretendedDriver:
    """`gpus` GPUs of one architecture. `eager` does all work at once."""

    def __init__(self, gpus: int = 1, capability: tuple[int, int] = (12, 0), version: int = 13000) -> None:
        self.gpus, self.capability, self.version = gpus, capability, version
        self.memory = GlobalMemory()
        self.calls: list[str] = []
        self.counts: Counter[str] = Counter()
        self.fail: dict[str, Any] = {}
        """Statuses with which the next call of a name ends."""
        self.failing_kernel = ""
        """Part of the name of a kernel that fails as it runs; every call after that does so too."""
        self.eager = False
        self.broken: Any = None
        self._verified = not has_driver()
        self._contexts = threading.local()
        self._next = 1 << 20
        self._asked = 0
        self._objects: dict[int, Any] = {}
        self._holder: dict[int, tuple[int, int]] = {}
        """Size and GPU of each allocation, by address."""
        self._pinned: dict[int, Any] = {}
        for handle in (LEGACY, MINE):
            self._objects[handle] = _Stream()

    def kinds(self) -> set[str]:
        """What the driver keeps for its callers, but for functions and nodes, which go with modules and graphs."""
        kept = [t for t in self._objects.values() if not isinstance(t, _Node | PtxKernel)]
        return {type(thing).__name__ for thing in kept}

    # The machinery

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu") or name.startswith("cuda"):
            return getattr(real, name)
        try:
            answer = object.__getattribute__(self, f"_{name}")
        except AttributeError:
            raise Misuse(f"{name} is not pretended; add it with the meaning that CUDA's documentation gives") from None

        def call(*arguments: Any) -> tuple[Any, ...]:
            self._verify(name, arguments)
            self.calls.append(name)
            self.counts[name] += 1
            if name not in _ANYWHERE:
                self._context()
            if name in self.fail:
                return (self.fail.pop(name), *[0] * _values(name))
            if self.broken is not None and name not in _ANYWHERE:
                return (self.broken, *[0] * _values(name))
            result = answer(*arguments)
            status, *values = result if isinstance(result, tuple) else (_SUCCESS, *([] if result is None else [result]))
            if status == _SUCCESS and self.broken is not None and name in ("cuEventSynchronize", "cuEventQuery"):
                status = self.broken
            if len(values) != _values(name):
                raise Misuse(f"{name} gives {_values(name)} values, {len(values)} are pretended")
            return (status, *values)

        return call

    def _verify(self, name: str, arguments: Sequence[Any]) -> None:
        function = getattr(real, name, None)
        if function is None:
            raise Misuse(f"the bindings have no {name}")
        inspect.signature(function).bind(*arguments)
        if self._verified and not (getattr(_SEARCH, "under_way", False) or is_collecting()):
            _SEARCH.under_way = True
            try:
                function(*arguments)
            except RuntimeError as error:
                if type(error).__name__ != "DynamicLibNotFoundError":
                    raise
            else:
                raise Misuse(f"{name} was carried out by a driver")
            finally:
                _SEARCH.under_way = False

    def _new(self, thing: Any) -> int:
        self._next += 16
        self._objects[self._next] = thing
        return self._next

    def _at(self, handle: Any, kind: type) -> Any:
        thing = self._objects.get(int(handle))
        if not isinstance(thing, kind):
            raise Misuse(f"{int(handle):#x} is no {kind.__name__}")
        return thing

    def _stack(self) -> list[int]:
        if not hasattr(self._contexts, "stack"):
            self._contexts.stack = []
        stack: list[int] = self._contexts.stack
        return stack

    def _context(self) -> int:
        """The GPU whose context is current."""
        if not self._stack():
            raise Misuse("no context is current")
        return self._stack()[-1]

    def _ask(self, stream: Any, work: Work, launch: Sequence[Any] | None = None) -> None:
        found = self._at(stream, _Stream)
        if found.captured is not None:
            found.captured.append(_Node(work, launch))
            return
        self._asked += 1
        found.waiting.append((self._asked, work))
        if self.eager:
            self._drain(found, self._asked)

    def _drain(self, stream: _Stream, number: int) -> None:
        """Do the work of a stream up to a number."""
        while stream.waiting and stream.waiting[0][0] <= number:
            stream.waiting.popleft()[1]()

    def _all_streams(self) -> Iterator[_Stream]:
        yield from [thing for thing in self._objects.values() if isinstance(thing, _Stream)]

    # Devices and contexts

    def _cuInit(self, flags: int) -> None:
        return None

    def _cuDriverGetVersion(self) -> int:
        return self.version

    def _cuGetErrorString(self, status: Any) -> bytes:
        return f"what {status.name} means".encode()

    def _cuDeviceGetCount(self) -> int:
        return self.gpus

    def _cuDeviceGet(self, number: int) -> Any:
        assert 0 <= number < self.gpus
        return real.CUdevice(number)

    def _cuDeviceGetName(self, length: int, device: Any) -> bytes:
        return f"Pretended {int(device)}\0".encode()

    def _cuDeviceGetAttribute(self, attribute: Any, device: Any) -> int:
        major = real.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        minor = real.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
        return self.capability[(major, minor).index(attribute)]

    def _cuDeviceTotalMem(self, device: Any) -> int:
        return 8 << 30

    def _cuDevicePrimaryCtxRetain(self, device: Any) -> Any:
        return real.CUcontext(100 + int(device))

    def _cuDevicePrimaryCtxRelease(self, device: Any) -> None:
        return None

    def _cuCtxPushCurrent(self, context: Any) -> None:
        self._stack().append(int(context) - 100)

    def _cuCtxPopCurrent(self) -> Any:
        return real.CUcontext(100 + self._stack().pop())

    def _cuCtxSynchronize(self) -> None:
        for stream in self._all_streams():
            if stream.captured is not None:
                raise Misuse("a GPU is waited for while one of its streams is captured")
            self._drain(stream, self._asked)

    # Memory

    def _cuMemAlloc(self, size: int) -> Any:
        if any(stream.captured is not None for stream in self._all_streams()):
            raise Misuse("memory is allocated while a stream is captured")
        address = self.memory.allocate(size)
        self.memory.write(address, np.full(size, 0xA5, np.uint8))
        self._holder[address] = (size, self._context())
        return real.CUdeviceptr(address)

    def _cuMemFree(self, address: Any) -> None:
        if any(stream.waiting for stream in self._all_streams()):
            raise Misuse("memory is freed while work is under way")
        size, holder = self._holder.pop(int(address))
        if holder != self._context():
            raise Misuse(f"memory of GPU {holder} is freed in the context of GPU {self._context()}")
        self.memory.free(int(address), size)

    def _cuMemGetInfo(self) -> tuple[Any, int, int]:
        return _SUCCESS, 1000, 8 << 30

    def _cuMemHostAlloc(self, size: int, flags: int) -> int:
        buffer = (ctypes.c_uint8 * size)(*b"\x5a" * min(size, 16))
        self._pinned[ctypes.addressof(buffer)] = buffer
        return ctypes.addressof(buffer)

    def _cuMemFreeHost(self, address: int) -> None:
        del self._pinned[address]

    def _cuPointerGetAttribute(self, attribute: Any, address: int) -> Any:
        for start, (size, gpu) in self._holder.items():
            if start <= address < start + size:
                return gpu
        return real.CUresult.CUDA_ERROR_INVALID_VALUE, 0

    def _cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: Any) -> None:
        def work() -> None:
            self.memory.write(target, np.frombuffer(ctypes.string_at(source, size), np.uint8))

        pinned = any(start <= source < start + len(data) for start, data in self._pinned.items())
        if pinned:
            self._ask(stream, work)
            return
        held = ctypes.string_at(source, size)  # pageable memory is read before the call returns
        self._ask(stream, lambda: self.memory.write(target, np.frombuffer(held, np.uint8)))

    def _cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: Any) -> None:
        def work() -> None:
            data = self.memory.read(source, size)
            ctypes.memmove(target, data.ctypes.data, size)

        self._ask(stream, work)
        if not any(start <= target < start + len(data) for start, data in self._pinned.items()):
            self._drain(self._at(stream, _Stream), self._asked)  # the call returns when the copy is there

    def _cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: Any) -> None:
        self._ask(stream, lambda: self.memory.write(target, self.memory.read(source, size)))

    # Code

    def _cuModuleLoadData(self, image: bytes) -> Any:
        if image.startswith(b"\x7fELF"):
            return real.CUmodule(self._new("machine code"))
        return real.CUmodule(self._new(parse_ptx(image.rstrip(b"\0").decode())))

    def _cuModuleUnload(self, module: Any) -> None:
        del self._objects[int(module)]

    def _cuModuleGetFunction(self, module: Any, name: bytes) -> Any:
        kernels = self._objects[int(module)]
        return real.CUfunction(self._new(kernels if kernels == "machine code" else kernels[name.decode()]))

    def _cuFuncLoad(self, function: Any) -> None:
        return None

    def _cuLaunchKernel(self, function: Any, *rest: Any) -> None:
        blocks, rows, planes, threads, wide, deep, shared, stream, parameters, extra = rest
        assert (rows, planes, wide, deep, shared, extra) == (1, 1, 1, 1, 0, 0) and 0 < threads <= 1024
        launch = (self._at(function, PtxKernel), blocks, threads, list(parameters[0]), self._context())
        self._ask(stream, lambda: self._launch(*launch), launch)

    def _launch(self, kernel: PtxKernel, blocks: int, threads: int, arguments: Sequence[int], gpu: int) -> None:
        if self.failing_kernel and self.failing_kernel in kernel.name:
            self.broken = real.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
        if self.broken is not None:
            return
        for address in arguments:
            holders = {g for start, (size, g) in self._holder.items() if start <= address < start + size}
            if holders != {gpu}:
                raise Misuse(f"{kernel.name} on GPU {gpu} is given an address of {holders or 'nobody'}")
        reports = simulate(kernel, self.memory, blocks, threads, arguments)
        if reports:
            raise Misuse(f"{kernel.name}: {dict(reports)}")

    # Graphs

    def _cuStreamBeginCapture(self, stream: Any, mode: Any) -> None:
        found = self._at(stream, _Stream)
        assert found.captured is None and int(stream) != LEGACY
        found.captured = []

    def _cuStreamGetCaptureInfo(self, stream: Any) -> tuple[Any, ...]:
        captured = self._at(stream, _Stream).captured
        last = [real.CUgraphNode(self._handle_of(captured[-1]))] if captured else []
        status = real.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
        return _SUCCESS, status, real.cuuint64_t(1), real.CUgraph(0), last, [], len(last)

    def _handle_of(self, thing: Any) -> int:
        return next((h for h, t in self._objects.items() if t is thing), None) or self._new(thing)

    def _cuStreamEndCapture(self, stream: Any) -> Any:
        found = self._at(stream, _Stream)
        nodes, found.captured = found.captured, None
        return real.CUgraph(self._new(nodes))

    def _cuStreamIsCapturing(self, stream: Any) -> Any:
        if not isinstance(self._objects.get(int(stream)), _Stream):
            return real.CUresult.CUDA_ERROR_INVALID_HANDLE, 0
        captured = self._at(stream, _Stream).captured is not None
        status = real.CUstreamCaptureStatus
        return status.CU_STREAM_CAPTURE_STATUS_ACTIVE if captured else status.CU_STREAM_CAPTURE_STATUS_NONE

    def _cuGraphInstantiate(self, graph: Any, flags: int) -> Any:
        nodes = self._at(graph, list)
        return real.CUgraphExec(self._new({id(node): node.launch for node in nodes} | {"nodes": nodes}))

    def _cuGraphDestroy(self, graph: Any) -> None:
        del self._objects[int(graph)]

    def _cuGraphExecDestroy(self, launched: Any) -> None:
        del self._objects[int(launched)]

    def _cuGraphExecKernelNodeSetParams(self, launched: Any, handle: Any, parameters: Any) -> None:
        graph, node = self._at(launched, dict), self._at(handle, _Node)
        if node.launch is None or id(node) not in graph:
            raise Misuse("the node is no launch of the graph")
        kernel = self._at(parameters.func, PtxKernel)
        if kernel is not node.launch[0]:
            raise Misuse("a launch gets another kernel")
        sizes = (parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ)
        block = (parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ)
        assert sizes[1:] == block[1:] == (1, 1)
        pointers = ctypes.cast(int(parameters.kernelParams), ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
        arguments = [pointers[k].contents.value for k in range(len(kernel.parameters))]
        graph[id(node)] = (kernel, sizes[0], block[0], arguments, node.launch[4])

    def _cuGraphLaunch(self, launched: Any, stream: Any) -> None:
        graph = self._at(launched, dict)
        for node in graph["nodes"]:
            launch = graph[id(node)]
            if launch is None:
                self._ask(stream, node.work)
            else:
                self._ask(stream, lambda launch=launch: self._launch(*launch))  # type: ignore[misc]

    # Streams and events

    def _cuStreamCreate(self, flags: int) -> Any:
        assert flags == int(real.CUstream_flags.CU_STREAM_NON_BLOCKING)
        return real.CUstream(self._new(_Stream()))

    def _cuStreamDestroy(self, stream: Any) -> None:
        self._drain(self._at(stream, _Stream), self._asked)
        del self._objects[int(stream)]

    def _cuEventCreate(self, flags: int) -> Any:
        return real.CUevent(self._new(_Event()))

    def _cuEventRecord(self, event: Any, stream: Any) -> None:
        found = self._at(event, _Event)
        self._ask(stream, lambda: None)
        found.stream, found.number = self._at(stream, _Stream), self._asked

    def _cuStreamWaitEvent(self, stream: Any, event: Any, flags: int) -> None:
        found = self._at(event, _Event)
        source, number = found.stream, found.number
        self._ask(stream, lambda: self._drain(source, number))

    def _cuEventQuery(self, event: Any) -> Any:
        found = self._at(event, _Event)
        waiting = found.stream.waiting
        done = not waiting or waiting[0][0] > found.number
        return (_SUCCESS,) if done else (real.CUresult.CUDA_ERROR_NOT_READY,)

    def _cuEventSynchronize(self, event: Any) -> None:
        found = self._at(event, _Event)
        self._drain(found.stream, found.number)

    def _cuEventDestroy(self, event: Any) -> None:
        del self._objects[int(event)]


def _values(name: str) -> int:
    """How many values a function gives behind its status, by its documentation."""
    text = getattr(real, name).__doc__
    returns = text.partition("\nReturns\n-------\n")[2].partition("\nSee Also")[0]
    if not returns.startswith("CUresult"):
        raise Misuse(f"the documentation of {name} has another form")
    return len(re.findall(r"^\S+ : ", returns, re.MULTILINE))
