"""InferenceSession: onnxruntime's, over compiled code."""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from onnxla.compat.arguments import explained
from onnxla.compat.errors import EPFail, Fail, compat_error, of_onnxla
from onnxla.compat.io_binding import IOBinding
from onnxla.compat.model import SessionModel
from onnxla.compat.node_arg import ModelMetadata, NodeArg
from onnxla.compat.options import NO_CPU_FALLBACK, RunOptions, SessionOptions, require_supported
from onnxla.compat.ort_value import OrtValue, value_of
from onnxla.compat.profiling import SessionProfile
from onnxla.compat.providers import CPU, Placement, Providers, placement
from onnxla.errors import CompileError, DeviceError, InputError, OnnxlaError

_SHRINK = "memory.enable_memory_arena_shrinkage"


class InferenceSession:
    """A model, ready to run. Where sizes of its inputs are open, the code is made when a run first brings them.

    Raises the exceptions of onnxruntime (`onnxla.compat.errors`); any number of threads may call one session.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Providers = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        """`path_or_bytes` is an ONNX model, or the path of an artifact (`.onnxla`).

        Raises NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented or Fail for a model that cannot be compiled,
        NotImplemented for options that may not be passed over, TypeError for arguments of another type.
        """
        if isinstance(path_or_bytes, os.PathLike):
            path_or_bytes = os.fspath(path_or_bytes)
        if not isinstance(path_or_bytes, (str, bytes)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is of onnxla.compat.SessionOptions, not {type(sess_options)}")
        self._source = path_or_bytes
        self._options = sess_options or SessionOptions()
        require_supported(self._options)
        self._threads: ThreadPoolExecutor | None = None
        self._open(providers, provider_options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process compiles the model again, or finds it in the cache."""
        options = self.get_provider_options()
        return InferenceSession, (self._source, self._options, list(options), list(options.values()))

    def _open(self, providers: Providers, provider_options: Sequence[Mapping[Any, Any]] | None) -> None:
        if providers is None and self._options._providers:
            providers = list(self._options._providers.items())
        begin = time.perf_counter_ns()
        place = placement(providers, provider_options)
        try:
            self._model = SessionModel(self._source, self._options, place)
        except (CompileError, DeviceError) as error:
            if place.gpu is None:
                raise of_onnxla(error) from error
            if self._options._entries.get(NO_CPU_FALLBACK) == "1":
                raise compat_error(EPFail, str(error)) from error
            warnings.warn(f"the model runs on the CPU, not on cuda:{place.gpu}: {error}", stacklevel=3)
            place = Placement(None, None, {CPU: {}})
            self._model = self._on_cpu(place)
        except OnnxlaError as error:
            raise of_onnxla(error) from error
        self._place = place
        self._profile = (
            SessionProfile(self._options.profile_file_prefix, begin) if self._options.enable_profiling else None
        )

    def _on_cpu(self, place: Placement) -> SessionModel:
        try:
            return SessionModel(self._source, self._options, place)
        except OnnxlaError as error:
            raise of_onnxla(error) from error

    # What it is

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that every run must be given, but for optionals."""
        return list(self._model.inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._model.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs with a value in the model, which a run may replace; the code for that is made then."""
        return list(self._model.overridable)

    def get_modelmeta(self) -> ModelMetadata:
        return self._model.metadata

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        """The provider that runs the model, and CPUExecutionProvider."""
        return list(self._place.options)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: dict(options) for name, options in self._place.options.items()}

    def set_providers(
        self, providers: Providers = None, provider_options: Sequence[Mapping[Any, Any]] | None = None
    ) -> None:
        """Compile again, for other providers."""
        self._open(providers, provider_options)

    def disable_fallback(self) -> None:
        """Accepted: a run never goes to another provider."""

    def enable_fallback(self) -> None:
        """Accepted: a run never goes to another provider."""

    # Running

    def run(
        self,
        output_names: Iterable[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The outputs named (all for None or an empty list), as arrays, lists of arrays or of dicts.

        Raises ValueError for inputs that are missing, InvalidArgument for what does not fit the model.
        """
        if run_options is not None:
            _require_not_terminated(run_options)
        names = _names(output_names)
        for value in input_feed.values():
            if isinstance(value, OrtValue):
                input_feed = {name: value_of(given) for name, given in input_feed.items()}
                break
        try:
            results = self._model.run(names, input_feed) if self._profile is None else self._profiled(names, input_feed)
        except OnnxlaError as error:
            raise self._explained(error, names, input_feed) from error
        if run_options is not None:
            self._after(run_options)
        return results

    def run_with_ort_values(
        self,
        output_names: Iterable[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """As `run`, with OrtValues."""
        return [OrtValue(result) for result in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(
        self,
        output_names: Iterable[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """`run` in a thread, which calls `callback(results, user_data, "")`, or `callback([], user_data, error)`.

        Raises ValueError for inputs that are missing, at once. Runs of one session follow one another.
        """
        missing = explained(self._model, InputError(""), None, input_feed)
        if isinstance(missing, ValueError):
            raise missing
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "onnxla-session")

        def work() -> None:
            try:
                results, problem = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                results, problem = [], getattr(error, "text", "") or str(error) or type(error).__name__
            callback(results, user_data, problem)

        self._threads.submit(work)

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that stay bound from run to run."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run on what is bound. Raises RuntimeError as onnxruntime does, also for what does not fit the model."""
        if run_options is not None:
            _require_not_terminated(run_options)
        try:
            iobinding._run(self._model)
        except OnnxlaError as error:
            reason = self._explained(error, None, iobinding._feeds())
            raise RuntimeError(f"Error in execution: {getattr(reason, 'text', reason)}") from error
        if run_options is not None:
            self._after(run_options)

    # Profiling

    def end_profiling(self) -> str:
        """Write the file of a session that was made with `enable_profiling`, and return its path; empty for others."""
        if self._profile is None:
            return ""
        path, self._profile = self._profile.written(), None
        return path

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, by `time.perf_counter_ns()`; 0 without profiling."""
        return 0 if self._profile is None else self._profile.begin

    # Inside

    def _profiled(self, names: list[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        assert self._profile is not None
        begin = time.perf_counter_ns()
        results, profile = self._model.profiled(names, feeds)
        self._profile.add(profile, begin, time.perf_counter_ns())
        return list(results)

    def _explained(self, error: OnnxlaError, names: list[str] | None, feeds: Mapping[str, Any]) -> Exception:
        return explained(self._model, error, names, feeds)

    def _after(self, options: RunOptions) -> None:
        if options._entries.get(_SHRINK):
            self._model.release_memory()


def _names(output_names: Iterable[str] | None) -> list[str] | None:
    if isinstance(output_names, (str, bytes)):
        raise TypeError(f"output_names is a list of names, not {output_names!r}")
    names = None if output_names is None else list(output_names)
    return names or None


def _require_not_terminated(options: RunOptions) -> None:
    if options.terminate:
        raise compat_error(Fail, "Exiting due to terminate flag being set to true.")
