"""Knobs: defaults, the environment, and text that does not fit."""

from dataclasses import fields
from pathlib import Path

import pytest

from onnxla.config import SETTINGS, ChildLimits, CompileOptions, RuntimeSettings, table
from onnxla.errors import InputError


def test_the_environment_sets_knobs_and_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLA_OPT_LEVEL", "1")
    monkeypatch.setenv("ONNXLA_FAST_MATH", "yes")
    monkeypatch.setenv("ONNXLA_DISABLED_PASSES", "a, b,")
    options = CompileOptions.from_environment(fast_math=False)
    assert (options.opt_level, options.fast_math, options.disabled_passes) == (1, False, ("a", "b"))


@pytest.mark.parametrize(
    ("settings", "variable", "text", "message"),
    [
        (CompileOptions, "ONNXLA_OPT_LEVEL", "fast", "ONNXLA_OPT_LEVEL='fast'"),
        (CompileOptions, "ONNXLA_OPT_LEVEL", "7", "opt_level=7: choose 0, 1, 2 or 3"),
        (CompileOptions, "ONNXLA_FAST_MATH", "maybe", "'maybe' is neither true nor false"),
        (CompileOptions, "ONNXLA_PRECISION", "lowest", "choose one of 'default', 'highest', 'fp32'"),
        (RuntimeSettings, "ONNXLA_NUM_THREADS", "0", "num_threads=0: at least 1 is needed"),
        (RuntimeSettings, "ONNXLA_VERIFY_WEIGHTS", "often", "choose 'fast', 'full' or 'off'"),
        (RuntimeSettings, "ONNXLA_SPECIALISATIONS", "0", "specialisations=0: at least 1 is needed"),
        (ChildLimits, "ONNXLA_CHILD_MEMORY_BYTES", "0", "memory_bytes=0: choose a number above 0"),
        (ChildLimits, "ONNXLA_CHILD_WALL_SECONDS", "inf", "wall_seconds=inf: choose a number above 0"),
        (ChildLimits, "ONNXLA_CHILD_NICENESS", "20", "niceness=20: choose 0 to 19"),
    ],
)
def test_text_that_does_not_fit_is_refused(
    settings: type[CompileOptions | RuntimeSettings | ChildLimits],
    variable: str,
    text: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(InputError, match=message):
        settings.from_environment()


def test_what_does_not_change_the_code_is_not_in_its_key() -> None:
    neutral = CompileOptions(
        dump_to="x",
        cache_dir="y",
        cache_bytes=7,
        verify=False,
        dump_weights=False,
        compile_timeout=1,
        pad_to_bucket="b",
    )
    assert CompileOptions().code_options() == neutral.code_options()
    assert CompileOptions().code_options() != CompileOptions(fast_math=True).code_options()


def test_every_knob_is_documented_and_variables_are_unique() -> None:
    knobs = [k for settings in SETTINGS for k in settings.describe()]
    variables = [k.variable for k in knobs]
    assert len(set(variables)) == len(variables)
    assert all(k.about.endswith(".") and k.variable.startswith("ONNXLA_") for k in knobs)
    assert [k.name for k in knobs] == [f.name for s in SETTINGS for f in fields(s)]  # type: ignore[arg-type]
    assert all(k.name in table() for k in knobs)


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    page = (Path(__file__).parents[1] / "docs" / "knobs.md").read_text()
    assert page.endswith(table()), "write table() to docs/knobs.md again"
