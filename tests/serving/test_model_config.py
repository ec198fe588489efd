"""config.pbtxt: what is followed, and that everything else is said, all at once."""

import pytest

from onnxla.serving.config_text import config_of_json, config_of_text
from onnxla.serving.errors import InvalidRequestError
from onnxla.serving.model_config import Batching, ModelConfig, VersionPolicy, Warmup


def test_what_triton_says_is_followed() -> None:
    text = """
    name: "m"
    backend: "onnxruntime"
    max_batch_size: 8
    dynamic_batching {
      preferred_batch_size: [ 8, 4 ]
      max_queue_delay_microseconds: 100
      default_queue_policy { max_queue_size: 7 default_timeout_microseconds: 2000 allow_timeout_override: true }
    }
    instance_group [ { count: 2 kind: KIND_CPU }, { kind: KIND_CPU } ]
    version_policy { specific { versions: [ 1, 3 ] } }
    model_warmup [ { name: "zeros" batch_size: 2 count: 3
                     inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 5 ] zero_data: true } } } ]
    optimization { priority: PRIORITY_MAX }
    parameters { key: "intra_op_thread_count" value { string_value: "4" } }
    """
    found = config_of_text("m", text)
    assert found == ModelConfig(
        "m",
        max_batch_size=8,
        batching=Batching((4, 8), 100e-6),
        queue_size=7,
        queue_timeout=2e-3,
        instances=3,
        device="cpu",
        versions=VersionPolicy(None, (1, 3)),
        warmup=(Warmup({"x": (5,)}, (), 2, 3),),
    )


def test_settings_of_our_own_are_parameters() -> None:
    pairs = {
        "batch_dimension": "n",
        "batch_sizes": "1, 4",
        "dims": "length=16,32 width=8",
        "num_threads": "2",
        "workers": "0",
        "options": '{"fast_math": true}',
        "unseen_shapes": "refuse",
        "assume_independent_rows": "true",
    }
    rows = [f"parameters {{ key: '{k}' value {{ string_value: '{v}' }} }}" for k, v in pairs.items()]
    found = config_of_text("m", "max_batch_size: 4\n" + "\n".join(rows))
    assert found == ModelConfig(
        "m",
        max_batch_size=4,
        batch_dimension="n",
        batch_sizes=(1, 4),
        dims={"length": (16, 32), "width": (8,)},
        num_threads=2,
        workers=0,
        options={"fast_math": True},
        unseen_shapes="refuse",
        assume_independent_rows=True,
    )


def test_every_problem_is_in_one_report() -> None:
    text = """
    name: "other"
    backend: "python"
    max_batch: 3
    dynamic_batching { preserve_ordering: true  delay: [ { x: "}" }, 3 ]  priority_levels: 3 }
    batch_output [ { target_name: "y" } ]
    input [ { name: "x" reshape { shape: [ 1 ] } } ]
    instance_group [ { kind: KIND_GPU }, { kind: KIND_CPU  profile: "p" } ]
    parameters { key: "workers" value { string_value: "many" } }
    parameters { key: "worker" value { string_value: "1" } }
    response_cache { enable: true }
    """
    with pytest.raises(InvalidRequestError) as caught:
        config_of_text("m", text)
    said = str(caught.value)
    for part in (
        '4:5 : Message type "inference.ModelConfig" has no field named "max_batch"',
        'has no field named "delay"',
        "name is 'other', and the folder 'm'",
        "backend 'python' is not one of onnxla, onnxruntime, tensorflow",
        "dynamic_batching.preserve_ordering: ",
        "dynamic_batching needs max_batch_size",
        "priority_levels: ",
        "batch_output: ",
        "input.reshape: ",
        "one model runs on one device, not on cpu and cuda",
        "instance_group.profile: ",
        "parameter workers='many'",
        "no parameter 'worker'; there are target, ",
        "response_cache.enable: ",
    ):
        assert part in said
    assert "14 problems" in said


@pytest.mark.parametrize("text", ["max_batch_size: -1", "max_batch_size: ", "{", "x", "input {", 'name: "\\xff"', "\0"])
def test_malformed_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        config_of_text("m", text)


@pytest.mark.parametrize("text", ["", "[]", "3", '{"max_batch_size": "x"}', '{"foo": 1}', "[" * 9999, '{"name": "n"}'])
def test_malformed_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        config_of_json("m", text)


def test_json_is_the_same() -> None:
    assert config_of_json("m", '{"max_batch_size": 2, "dynamic_batching": {}}') == config_of_text(
        "m", "max_batch_size: 2 dynamic_batching {}"
    )


def test_version_policies_choose() -> None:
    assert VersionPolicy().choose([3, 1, 2]) == [3]
    assert VersionPolicy(2).choose([3, 1, 2]) == [2, 3]
    assert VersionPolicy(None).choose([3, 1, 2]) == [1, 2, 3]
    assert VersionPolicy(None, (1, 9)).choose([3, 1, 2]) == [1]
