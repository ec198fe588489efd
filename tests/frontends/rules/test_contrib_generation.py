"""com.microsoft's GreedySearch, Sampling and BeamSearch over small decoders, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import onnxla
from onnxla.config import Limits
from onnxla.errors import DynamicShapeError, OnnxlaError, ResourceLimitError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.generation_models import (
    END,
    KNOWN,
    PAD,
    START,
    WORDS,
    both,
    encoder_decoder,
    gpt,
    searching,
)
from tests.frontends.witness import f32, run_imported, run_onnxruntime, s32

Inputs = dict[str, Array | None]


def prompt(seed: int, batch: int = 3, length: int = 4) -> Array:
    """Words, two of the first row being padding in every third prompt."""
    ids = np.random.default_rng(seed).integers(2, WORDS, (batch, length)).astype(np.int32)
    if seed % 3 == 1:
        ids[0, :2] = PAD
    return ids


def kept(seed: int, *shape: int, share: float = 0.7) -> Array:
    """A mask of words, the end token allowed."""
    mask = (np.random.default_rng([seed, 1]).random(shape) < share).astype(np.int32)
    mask[..., END] = 1
    return mask


def interpreted(model: ModelProto, inputs: Inputs) -> list[Array]:
    feeds = {n: v for n, v in inputs.items() if v is not None}
    return run_imported(import_model(model, constants={n: v for n, v in feeds.items() if n in KNOWN}), feeds)


def up_to_the_end(sequences: Array) -> list[list[int]]:
    """Rows until all have ended: behind that, onnxruntime leaves its memory as it was."""
    going = [np.flatnonzero(row != PAD).max(initial=0) + 1 for row in sequences]
    return [row[: max(going)].tolist() for row in sequences]


class TestGreedySearch:
    @pytest.mark.parametrize(
        ("seed", "changed", "attributes"),
        [
            (0, {}, {}),
            (1, {}, {}),
            (2, {"min_length": s32([9])}, {}),
            (3, {"repetition_penalty": f32([1.7])}, {"no_repeat_ngram_size": 3}),
            (4, {"repetition_penalty": f32([0.6])}, {"no_repeat_ngram_size": 1}),
            (5, {"vocab_mask": kept(5, WORDS)}, {"no_repeat_ngram_size": 2}),
            (6, {"prefix_vocab_mask": kept(6, 3, WORDS, share=0.3)}, {}),
            (7, {"attention_mask": s32([[0, 1, 0, 1], [1, 1, 1, 1], [1, 0, 1, 1]])}, {}),
        ],
    )
    def test_tokens(self, seed: int, changed: Inputs, attributes: dict[str, Any]) -> None:
        inputs: Inputs = {"input_ids": prompt(seed), "max_length": s32([11]), "min_length": None}
        inputs |= {"repetition_penalty": None, "vocab_mask": None, "prefix_vocab_mask": None, "attention_mask": None}
        inputs |= changed
        model = searching("GreedySearch", gpt(seed, layers=2), inputs, "y", **attributes)
        (ours,), (theirs,) = both(model, inputs)
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        ended = up_to_the_end(ours)
        assert ended == theirs[:, : len(ended[0])].tolist()

    def test_natively_and_twice(self) -> None:
        """Compiled, with the length given while compiling or when it runs."""
        inputs = {"input_ids": prompt(0), "max_length": s32([7])}
        model = searching("GreedySearch", gpt(0), inputs, "y")
        (theirs,) = run_onnxruntime(model, inputs)
        compiled = onnxla.compile(model)
        for longest in (7, 5):
            (ours,) = compiled.run(None, {"input_ids": inputs["input_ids"], "max_length": s32([longest])})
            assert ours.tolist() == theirs[:, :longest].tolist()

    def test_words_beyond_the_vocabulary(self) -> None:
        """Logits may be wider than the vocabulary, for the sake of products; onnxruntime takes that on GPUs only."""
        inputs: Inputs = {"input_ids": np.minimum(prompt(8), 7), "max_length": s32([9])}
        masked = inputs | {"min_length": None, "repetition_penalty": None}
        masked["vocab_mask"] = (np.arange(WORDS) < 8).astype(np.int32)
        (ours,) = interpreted(searching("GreedySearch", gpt(8), inputs, "y", vocab_size=8), inputs)
        (expected,), _ = both(searching("GreedySearch", gpt(8), masked, "y"), masked)
        assert ours.tolist() == expected.tolist()

    def test_another_decoder_first(self) -> None:
        inputs = {"input_ids": prompt(0), "max_length": s32([9])}
        graphs = gpt(0) | {"init_decoder": gpt(1)["decoder"]}
        (ours,), (theirs,) = both(searching("GreedySearch", graphs, inputs, "y"), inputs)
        assert ours.tolist() == theirs.tolist()


class TestSampling:
    INPUTS: Inputs = {"input_ids": prompt(7), "max_length": s32([12]), "min_length": s32([12])}
    REST: Inputs = dict.fromkeys(
        ("repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask", "presence_mask")
    )

    def sampled(self, inputs: Inputs, **attributes: Any) -> Array:
        (tokens,) = interpreted(searching("Sampling", gpt(7), inputs, "y", **attributes), inputs)
        return tokens

    @pytest.mark.parametrize("custom", [0, 1])
    def test_the_likeliest_alone_is_greedy(self, custom: int) -> None:
        inputs = self.INPUTS | self.REST | {"seed": s32([3])}
        model = searching("Sampling", gpt(7), inputs, "y", top_p=1e-6, custom=custom, temperature=0.5)
        (ours,), (theirs,) = both(model, inputs)
        assert ours.tolist() == theirs.tolist()

    def test_seeds_repeat(self) -> None:
        first, second, other = (
            self.sampled(self.INPUTS | self.REST | {"seed": s32([seed])}, top_p=1.0, temperature=3.0)
            for seed in (1, 1, 2)
        )
        assert first.tolist() == second.tolist() != other.tolist()

    @pytest.mark.parametrize("custom", [0, 1])
    def test_shares(self, custom: int) -> None:
        """Of many rows with one prompt, the next tokens have their probabilities, without the least likely tail."""
        rows, top_p = 1000, 0.8
        ids = np.tile(prompt(0, batch=1), (rows, 1))
        one: Inputs = {"input_ids": ids[:1], "max_length": s32([5]), "min_length": s32([0]), "num_beams": s32([1])}
        one |= {"num_return_sequences": s32([1]), "length_penalty": f32([1])}
        model = searching("BeamSearch", gpt(7, 0.6), one, "y s logs")
        likelihood = np.exp(both(model, one)[0][2].reshape(-1))
        order = np.argsort(-likelihood)
        before = np.cumsum(likelihood[order]) - likelihood[order]
        wanted = np.zeros(WORDS)
        wanted[order[before < top_p]] = likelihood[order[before < top_p]]
        wanted /= wanted.sum()
        inputs = {"input_ids": ids, "max_length": s32([5]), "min_length": None} | self.REST | {"seed": s32([5])}
        sampling = searching("Sampling", gpt(7, 0.6), inputs, "y", top_p=top_p, custom=custom)
        given = {n: v for n, v in inputs.items() if n in ("max_length", "seed") and v is not None}
        (tokens,) = onnxla.compile(sampling, constants=given).run(None, {"input_ids": ids})
        found = tokens[:, 4].copy()
        # The end token is written as padding.
        shares = np.bincount(found, minlength=WORDS) / rows
        wanted[PAD] += wanted[END]
        wanted[END] = 0
        np.testing.assert_allclose(shares, wanted, atol=5 * np.sqrt(0.25 / rows))

    def test_presence(self) -> None:
        """onnxruntime's kernel for CPUs does not read presence_mask; a large penalty forbids."""
        mask = np.ones((3, WORDS), np.int32)
        mask[:, [3, 4]] = 0
        inputs = self.INPUTS | self.REST | {"presence_mask": mask}
        tokens = self.sampled(inputs, top_p=1.0, presence_penalty=1e6)
        assert set(tokens[:, 4:].reshape(-1).tolist()) <= {3, 4}


def beams(seed: int, batch: int, count: int, wanted: int, **changed: Array | None) -> Inputs:
    inputs: Inputs = {"input_ids": prompt(seed, batch), "max_length": s32([9]), "min_length": s32([0])}
    inputs |= {"num_beams": s32([count]), "num_return_sequences": s32([wanted]), "length_penalty": f32([1.0])}
    inputs |= {"repetition_penalty": f32([1.0]), "vocab_mask": np.ones(WORDS, np.int32)}
    inputs |= {"prefix_vocab_mask": np.ones((batch, WORDS), np.int32), "attention_mask": None}
    return inputs | changed


def check_beams(inputs: Inputs, graphs: dict[str, Any], **attributes: Any) -> None:
    model = searching("BeamSearch", graphs, inputs, "y scores", **attributes)
    ours, theirs = both(model, inputs)
    assert ours[0].dtype == theirs[0].dtype and ours[0].tolist() == theirs[0].tolist()
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-5)


class TestBeamSearch:
    @pytest.mark.parametrize(
        ("seed", "count", "wanted", "changed", "attributes"),
        [
            (0, 1, 1, {}, {}),
            (1, 3, 2, {"length_penalty": f32([2.0])}, {}),
            (2, 2, 2, {"length_penalty": f32([-1.0]), "min_length": s32([7])}, {}),
            (3, 3, 3, {"repetition_penalty": f32([1.7])}, {"no_repeat_ngram_size": 2}),
            (4, 2, 1, {"vocab_mask": kept(4, WORDS)}, {}),
            (5, 4, 3, {"prefix_vocab_mask": kept(5, 1, WORDS, share=0.3)}, {}),
            (7, 2, 1, {"attention_mask": s32([[0, 1, 1, 1]])}, {}),
        ],
    )
    def test_one_batch_element(
        self, seed: int, count: int, wanted: int, changed: Inputs, attributes: dict[str, Any]
    ) -> None:
        inputs = beams(seed, 1, count, wanted, **changed)
        check_beams(inputs, gpt(seed, 0.6), early_stopping=seed % 2, **attributes)

    @pytest.mark.parametrize("seed", range(4))
    def test_batches(self, seed: int) -> None:
        """With early_stopping=0 onnxruntime ends an element by the scores of another one."""
        check_beams(beams(seed, 3, 1 + seed % 3, 1), gpt(seed, 0.6, layers=2), early_stopping=1)

    def test_batches_are_their_elements(self) -> None:
        inputs = beams(0, 3, 2, 2, length_penalty=f32([2.0]))
        graphs = gpt(0, 0.6)
        together, _ = both(searching("BeamSearch", graphs, inputs, "y scores"), inputs)
        for i in range(3):
            alone = inputs | {
                n: v[i : i + 1] for n, v in inputs.items() if n in ("input_ids", "prefix_vocab_mask") and v is not None
            }
            own, theirs = both(searching("BeamSearch", graphs, alone, "y scores"), alone)
            assert own[0][0].tolist() == together[0][i].tolist() == theirs[0][0].tolist()

    def test_scores_of_all_tokens(self) -> None:
        inputs = beams(3, 1, 2, 1, min_length=s32([9]))
        ours, theirs = both(searching("BeamSearch", gpt(3, 0.6), inputs, "y scores logs"), inputs)
        assert ours[2].shape == theirs[2].shape == (5, 1, 2, WORDS)
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-4, atol=1e-4)

    def test_natively(self) -> None:
        inputs = {n: v for n, v in beams(1, 1, 2, 2, max_length=s32([7])).items() if v is not None}
        model = searching("BeamSearch", gpt(1, 0.6), inputs, "y scores")
        ours, theirs = onnxla.compile(model).run(None, inputs), run_onnxruntime(model, inputs)
        assert ours[0].tolist() == theirs[0].tolist()
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4)

    @pytest.mark.parametrize("reads_token", [False, True])
    @pytest.mark.parametrize("seed", range(3))
    def test_an_encoder_and_a_decoder(self, seed: int, reads_token: bool) -> None:
        inputs = beams(seed, 1 + seed % 2, 1 + seed, 1, max_length=s32([7]), repetition_penalty=f32([1.3]))
        if seed == 2:
            inputs["attention_mask"] = s32([[1, 1, 0, 1]])
        attributes = {"model_type": 1, "decoder_start_token_id": START, "early_stopping": 1}
        check_beams(inputs, encoder_decoder(seed, reads_token), **attributes)


class TestWhisper:
    def inputs(self, seed: int, batch: int, count: int, **changed: Array | None) -> Inputs:
        inputs = beams(seed, batch, count, 1, max_length=s32([9]), **changed)
        inputs["input_ids"] = np.random.default_rng(seed).normal(size=(batch, 5, 6)).astype(np.float32)
        names = ("logits_processor", "cross_qk_layer_head", "extra_decoding_ids", "temperature")
        return inputs | {n: inputs.get(n) for n in ("decoder_input_ids", *names)} | changed

    def searching(self, inputs: Inputs, outputs: str = "y scores", seed: int = 0) -> ModelProto:
        graphs = encoder_decoder(seed, True, features=5)
        attributes = {"model_type": 2, "decoder_start_token_id": START, "early_stopping": 1}
        return searching("WhisperBeamSearch", graphs, inputs, outputs, **attributes)

    @pytest.mark.parametrize("seed", range(3))
    def test_features(self, seed: int) -> None:
        inputs = self.inputs(seed, 1 + seed, 2, decoder_input_ids=prompt(seed, 1 + seed, 3))
        if seed == 2:
            inputs["temperature"] = f32([1.5])
        ours, theirs = both(self.searching(inputs, seed=seed), inputs)
        assert ours[0].tolist() == theirs[0].tolist()
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-5)

    def test_refusals(self) -> None:
        inputs = self.inputs(0, 1, 2) | {"logits_processor": s32([1])}
        known = {n: v for n in KNOWN if (v := inputs.get(n)) is not None}
        with pytest.raises(OnnxlaError, match="logits_processor and cross_qk of WhisperBeamSearch are not known"):
            import_model(self.searching(inputs, "y scores logs qk"), constants=known)


class TestRefusals:
    INPUTS: Inputs = {"input_ids": prompt(0), "max_length": s32([9])}

    def test_the_length_must_be_known(self) -> None:
        with pytest.raises(DynamicShapeError, match=r"input 1 \(max_length\) of GreedySearch"):
            import_model(searching("GreedySearch", gpt(0), self.INPUTS, "y"))

    def test_too_many_tokens(self) -> None:
        model = searching("GreedySearch", gpt(0), self.INPUTS, "y")
        with pytest.raises(ResourceLimitError) as refusal:
            import_model(model, constants={"max_length": s32([9])}, limits=Limits(unrolled_iterations=4))
        assert "5 tokens are to be generated, and the decoder is written out for each; the limit is 4" in str(
            refusal.value
        )
        assert "set ONNXLA_MAX_UNROLLED=5" in str(refusal.value)

    @pytest.mark.parametrize(
        ("op", "longest", "attributes", "message"),
        [
            ("GreedySearch", [4], {}, "max_length 4 leaves no room behind 4 tokens"),
            ("GreedySearch", [-1], {}, r"is \[-1\], not one positive number"),
            ("GreedySearch", [9], {"model_type": 1}, "model_type=1 is not known"),
            ("Sampling", [9], {"model_type": 2}, "model_type=2 is not known"),
        ],
    )
    def test_lengths_and_kinds(self, op: str, longest: list[int], attributes: dict[str, Any], message: str) -> None:
        model = searching(op, gpt(0), self.INPUTS, "y", **attributes)
        with pytest.raises(OnnxlaError, match=message):
            import_model(model, constants={"max_length": s32(longest)})

    def test_more_sequences_than_beams(self) -> None:
        inputs = beams(0, 1, 2, 3)
        model = searching("BeamSearch", gpt(0), inputs, "y s")
        known = {n: v for n in ("max_length", "num_beams", "num_return_sequences") if (v := inputs[n]) is not None}
        with pytest.raises(OnnxlaError, match="3 sequences are wanted of 2 beams"):
            import_model(model, constants=known)

    def test_debugging_output(self) -> None:
        model = searching("Sampling", gpt(0), self.INPUTS, "y filtered")
        with pytest.raises(OnnxlaError, match="the output filtered_logits is not known"):
            import_model(model, constants={"max_length": s32([9])})
