"""A layer of PyTorch that runs on blocklang's kernels, trained on scanned digits.

    python examples/torch_op.py

Three operators, each a kernel: the product of a layer with its bias and ReLU, a softmax, and the gradient of
the softmax. PyTorch sees them as its own: autograd differentiates through them, `torch.library.opcheck`
checks them, and `torch.compile` compiles the model around them without a break (where there is a C++
compiler, as it needs).
"""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import torch
from sklearn.datasets import load_digits

import blocklang as bl
import blocklang.language as tl


@bl.jit
def relu(out_ptr, x_ptr, bias_ptr, n, columns, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n) + tl.load(bias_ptr + i % columns, i < n)
    tl.store(out_ptr + i, tl.where(x > 0, x, 0), i < n)


@bl.jit
def relu_gradient(out_ptr, grad_ptr, y_ptr, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, i < n)
    tl.store(out_ptr + i, tl.where(y > 0, tl.load(grad_ptr + i, i < n), 0), i < n)


@bl.jit
def softmax(out_ptr, x_ptr, columns, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + i
    x = tl.load(x_ptr + at, i < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + at, e / tl.sum(e, 0), i < columns)


@bl.jit
def softmax_gradient(out_ptr, grad_ptr, y_ptr, columns, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + i
    g, y = tl.load(grad_ptr + at, i < columns), tl.load(y_ptr + at, i < columns)
    tl.store(out_ptr + at, y * (g - tl.sum(g * y, 0)), i < columns)


def flat_grid(meta):
    return (bl.cdiv(meta["n"], meta["BLOCK"]),)


# The short form: one kernel, and what its parameters are. What is left (x_ptr, bias_ptr) are the inputs.
bias_relu = bl.torch.op(
    relu,
    name="digits::bias_relu",
    grid=flat_grid,
    outputs={"out_ptr": "x_ptr"},  # a tensor like x
    n=lambda x_ptr: x_ptr.numel(),
    columns=lambda x_ptr: x_ptr.shape[1],
    BLOCK=1024,
)
bias_relu_mask = bl.torch.op(
    relu_gradient,
    name="digits::bias_relu_mask",
    grid=flat_grid,
    outputs={"out_ptr": "y_ptr"},
    n=lambda y_ptr: y_ptr.numel(),
    BLOCK=1024,
)


# A backward names what it needs: the gradient of the result, and the result. Nothing else is kept for it.
@bias_relu.backward
def bias_relu_backward(grad: torch.Tensor, output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    grad_x = bias_relu_mask(grad, output)
    return grad_x, grad_x.sum(0)


# The long form: a function that makes its results and launches. Its shapes are found by running it without
# launches.
@bl.torch.op("digits::softmax")
def row_softmax(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    rows, columns = x.shape
    softmax[(rows,)](out, x, columns, BLOCK=bl.next_power_of_2(columns))
    return out


@row_softmax.backward
def row_softmax_backward(grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(output)
    rows, columns = output.shape
    softmax_gradient[(rows,)](out, grad.contiguous(), output, columns, BLOCK=bl.next_power_of_2(columns))
    return out


class Classifier(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Two layers; 64 pixels to the probabilities of 10 digits."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, width, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(width))
        self.second = torch.nn.Linear(width, 10)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return row_softmax(self.second(bias_relu(self.first(pixels), self.bias)))


def train(model, pixels: torch.Tensor, labels: torch.Tensor, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        chosen = model(pixels).gather(1, labels[:, None])
        (-chosen.log().mean()).backward()
        optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    images, numbers = load_digits(return_X_y=True)
    pixels = torch.from_numpy((images / 16).astype(np.float32))
    labels = torch.from_numpy(numbers)
    seen, unseen = slice(0, 1400), slice(1400, None)

    model = Classifier()
    hidden = model.first(pixels)
    wanted = torch.relu(hidden.double() + model.bias.double())
    error = (bias_relu(hidden, model.bias) - wanted).abs().max().item()
    print(f"bias and ReLU of {tuple(hidden.shape)}: largest error {error:.1e} (allowed: 1e-6)")
    assert error <= 1e-6

    x = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    b = torch.randn(7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(row_softmax, (x,))
    assert torch.autograd.gradcheck(bias_relu, (x, b))
    print("gradients equal finite differences in float64")

    train(model, pixels[seen], labels[seen], steps=60)
    right = (model(pixels[unseen]).argmax(1) == labels[unseen]).float().mean().item()
    print(f"digits recognised after 60 steps, of those not seen: {right:.1%}")
    assert right > 0.85

    backend = "inductor" if shutil.which("g++") else "aot_eager"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's compiler uses what PyTorch deprecates
        compiled = torch.compile(model, fullgraph=True, backend=backend)
        difference = (compiled(pixels) - model(pixels)).abs().max().item()
    print(f"torch.compile ({backend}, no graph breaks): largest difference {difference:.1e} (allowed: 1e-6)")
    assert difference <= 1e-6


if __name__ == "__main__":
    main()
