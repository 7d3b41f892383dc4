"""`bl.torch.op`: kernels as operators of PyTorch, with gradients, compiled and exported."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import blocklang as bl
from tests.frameworks import kernels

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'blocklang[torch]'")

# PyTorch reads the annotations of operators, in the module's globals.
if TYPE_CHECKING:
    from typing import Any as Tensor
else:
    Tensor = torch.Tensor


def flat_grid(meta: Any) -> tuple[int]:
    return (bl.cdiv(meta["n"], meta["BLOCK"]),)


@bl.torch.op("blocklang_tests::softmax")
def softmax(x: Tensor) -> Tensor:
    rows, columns = x.shape
    out = torch.empty(x.shape, dtype=x.dtype)
    if x.stride(1) != 1:
        x = x.contiguous()
    kernels.softmax[(rows,)](out, x, columns, x.stride(0), BLOCK=bl.next_power_of_2(columns))
    return out


@softmax.backward
def softmax_backward(grad: Tensor, output: Tensor) -> Tensor:
    out = torch.empty_like(output)
    rows, columns = output.shape
    grad = grad.contiguous()
    kernels.softmax_gradient[(rows,)](out, grad, output, columns, BLOCK=bl.next_power_of_2(columns))
    return out


add = bl.torch.op(
    kernels.add,
    name="blocklang_tests::add",
    grid=flat_grid,
    outputs={"out": "x"},
    n=lambda x: x.numel(),
    BLOCK=64,
)


@add.backward
def add_backward(grad: Tensor) -> tuple[Tensor, Tensor]:
    return grad.clone(), grad.clone()


scale = bl.torch.op(
    kernels.multiply,
    name="blocklang_tests::scale",
    grid=flat_grid,
    outputs={"out": "x"},
    inputs={"factor": float},
    n=lambda x: x.numel(),
    BLOCK=64,
)


@scale.backward
def scale_backward(grad: Tensor, factor: float) -> Tensor:
    return scale(grad, factor)


increment = bl.torch.op(
    kernels.increment,
    name="blocklang_tests::increment",
    grid=flat_grid,
    mutates=("x",),
    inputs={"by": float},
    n=lambda x: x.numel(),
    BLOCK=64,
)

statistics = bl.torch.op(
    kernels.sum_and_maximum,
    name="blocklang_tests::statistics",
    grid=lambda meta: (meta["x"].shape[0],),
    outputs={"total": lambda x: x.new_empty(x.shape[0]), "largest": lambda x: x.new_empty(x.shape[0])},
    n=lambda x: x.shape[1],
    BLOCK=lambda n: bl.next_power_of_2(n),
)


def model(x: Any, y: Any) -> Any:
    """Three operators, and PyTorch's own between them."""
    return softmax(add(x, torch.sin(y)) * 2) + scale(x, 0.5)


def reference(x: Any, y: Any) -> Any:
    return torch.softmax((x + torch.sin(y)) * 2, 1) + 0.5 * x


def random(*shape: int, dtype: Any = torch.float32, grad: bool = False) -> Any:
    values = torch.rand(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)
    return values.to(dtype).requires_grad_(grad)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_element_types(dtype: str) -> None:
    x = random(5, 37, dtype=getattr(torch, dtype))
    wanted = torch.softmax(x.double(), 1)
    tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
    got = softmax(x)
    assert got.dtype == x.dtype
    assert torch.allclose(got.double(), wanted, rtol=tolerance, atol=tolerance * 0.1)


@pytest.mark.parametrize(
    "view", [lambda x: x.t(), lambda x: x[::2], lambda x: x[:, 1:], lambda x: x[:, ::3], lambda x: x[:0]]
)
def test_views_and_empty_tensors(view: Callable[[Any], Any]) -> None:
    x = view(random(6, 8))
    y = view(random(6, 8) + 1)
    assert torch.allclose(softmax(x), torch.softmax(x, 1))
    assert torch.equal(add(x, y), x + y)
    assert add(x, y).is_contiguous()
    changed = view(random(6, 8))
    increment(changed, 2.0)
    assert torch.equal(changed, x + 2)


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (softmax, lambda: (random(5, 7, grad=True),)),
        (softmax, lambda: (random(7, 5).t(),)),
        (add, lambda: (random(5, 7, grad=True), random(5, 7, grad=True))),
        (scale, lambda: (random(6, grad=True), 3.0)),
        (increment, lambda: (random(5, 7), 3.0)),
        (statistics, lambda: (random(5, 7),)),
        (softmax_backward, lambda: (random(5, 7), random(5, 7))),
    ],
)
def test_opcheck(operator: Any, arguments: Callable[[], Any]) -> None:
    torch.library.opcheck(operator.op, arguments())


def test_gradcheck() -> None:
    x, y = (random(4, 9, dtype=torch.float64, grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(softmax, (x,))
    assert torch.autograd.gradcheck(add, (x, y))
    assert torch.autograd.gradcheck(lambda x: scale(x, 3.0), (x,))
    assert torch.autograd.gradcheck(model, (x, y))


inductor = pytest.param(
    "inductor",
    marks=[
        pytest.mark.slow,
        pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler: g++"),
    ],
)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", inductor])
def test_compile(backend: str) -> None:
    """No graph breaks, the same values and gradients, also for a size that comes later."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own compiler uses what PyTorch deprecates
        compiled = torch.compile(model, backend=backend, fullgraph=True)
        for rows, columns in ((5, 37), (8, 64), (3, 70)):
            x, y = (random(rows, columns, grad=True) for _ in range(2))
            wanted_x, wanted_y = (t.detach().clone().requires_grad_() for t in (x, y))
            got = compiled(x, y)
            wanted = reference(wanted_x, wanted_y)
            assert torch.allclose(got, wanted, atol=1e-6)
            (got**2).sum().backward()
            (wanted**2).sum().backward()
            assert torch.allclose(x.grad, wanted_x.grad, atol=1e-5)
            assert torch.allclose(y.grad, wanted_y.grad, atol=1e-5)


def test_export() -> None:
    class Model(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def forward(self, x: Any, y: Any) -> Any:
            return model(x, y)

    x, y = random(5, 37), random(5, 37)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Model(), (x, y))
    called = {str(node.target) for node in program.graph.nodes}
    assert {f"blocklang_tests.{name}.default" for name in ("softmax", "add", "scale")} <= called
    assert torch.allclose(program.module()(x, y), reference(x, y), atol=1e-6)


def test_mutation_is_declared() -> None:
    def twice(x: Any) -> Any:
        increment(x, 1.0)
        increment(x, 2.0)
        return x * 1

    x = torch.zeros(10)
    assert torch.compile(twice, backend="aot_eager", fullgraph=True)(x).tolist() == x.tolist() == [3.0] * 10


def test_several_results() -> None:
    x = random(5, 7)
    total, largest = statistics(x)
    assert torch.allclose(total, x.sum(1))
    assert torch.equal(largest, x.amax(1))


def test_vmap() -> None:
    x, y = random(3, 5, 7), random(5, 7)
    got = torch.func.vmap(add, in_dims=(0, None))(x, y)
    assert torch.equal(got, x + y)
    total, largest = torch.func.vmap(statistics, in_dims=2)(x.permute(1, 2, 0).contiguous())
    assert total.shape == largest.shape == (3, 5)
    assert torch.equal(largest, x.amax(2))


def test_a_gradient_of_named_inputs() -> None:
    @bl.torch.op("blocklang_tests::take")
    def take(x: Tensor, index: Tensor, times: float = 2.0) -> Tensor:
        return x[index] * times

    @take.backward(inputs=["x"])
    def take_backward(grad: Tensor, x: Tensor, index: Tensor, times: float) -> Tensor:
        return torch.zeros_like(x).index_add(0, index, grad * times)

    x = random(6, dtype=torch.float64, grad=True)
    index = torch.tensor([1, 1, 4])
    assert torch.autograd.gradcheck(lambda x: take(x, index), (x,))
    take(x, index).sum().backward()
    assert x.grad.tolist() == [0, 4, 0, 0, 2, 0]


def test_torch_s_own_form_of_a_gradient() -> None:
    @bl.torch.op("blocklang_tests::half")
    def half(x: Tensor) -> Tensor:
        return scale(x, 0.5)

    half.register_autograd(lambda ctx, grad: grad * 0.5)
    assert torch.autograd.gradcheck(half, (random(3, dtype=torch.float64, grad=True),))


def test_no_gradient_is_lost_silently() -> None:
    @bl.torch.op("blocklang_tests::no_gradient")
    def no_gradient(x: Tensor) -> Tensor:
        return scale(x, 2.0)

    x = random(3, grad=True)
    with pytest.raises(
        bl.LaunchError, match=r"no_gradient, which has none(.|\n)*no_gradient\.backward"
    ) as info:
        no_gradient(x).sum().backward()
    assert "def no_gradient(x: Tensor)" in str(info.value)
    with torch.no_grad():
        assert torch.equal(no_gradient(x), x * 2)
    x = random(2, 3, grad=True)
    (g,) = torch.autograd.grad(softmax(x).sum(), [x], create_graph=True)
    with pytest.raises(bl.LaunchError, match="softmax_backward, which has none"):
        g.sum().backward()
    undeclared = bl.torch.op(
        kernels.multiply,
        name="blocklang_tests::undeclared",
        grid=(1,),
        outputs={"x": "out"},
        n=1,
        factor=2.0,
        BLOCK=1,
    )
    with pytest.raises(bl.LaunchError, match="stores to input 'out', which is not said to change"):
        undeclared(torch.zeros(1))


def test_wrong_roles_are_refused_at_the_user_s_line() -> None:
    def make(**options: Any) -> None:
        bl.torch.op(kernels.add, name="blocklang_tests::wrong", **options)

    for options, words in (
        ({"grid": (1,), "outputs": {"out": "x"}, "n": 1}, "'BLOCK' of add has no value"),
        ({"grid": (1,), "outputs": {"put": "x"}, "n": 1, "BLOCK": 1}, "no parameter 'put'"),
        ({"grid": (1,), "outputs": {"out": "z"}, "n": 1, "BLOCK": 1}, "'z' is no input"),
        ({"grid": (1,), "n": 1, "BLOCK": 1}, "does nothing"),
        ({"outputs": {"out": "x"}, "n": 1, "BLOCK": 1}, "needs a grid"),
    ):
        with pytest.raises(bl.LaunchError, match=words) as info:
            make(**options)
        assert 'bl.torch.op(kernels.add, name="blocklang_tests::wrong", **options)' in str(info.value)
    with pytest.raises(bl.LaunchError, match="annotate each parameter"):

        @bl.torch.op("blocklang_tests::bare")
        def bare(x):  # type: ignore[no-untyped-def]
            return x

    with pytest.raises(bl.LaunchError, match="asks for 'weight', which it does not have"):

        @softmax.backward
        def wrong(grad: Tensor, weight: Tensor) -> Tensor:
            return grad

    with pytest.raises(bl.LaunchError, match="returns 1 gradients, and they are of x, y"):

        @add.backward
        def too_few(grad: Tensor) -> Tensor:
            return grad


def test_autotuned_kernels_are_not_measured_on_shapes() -> None:
    tuned = bl.autotune([bl.Config({"BLOCK": 32}), bl.Config({"BLOCK": 64})], key=["n"])(kernels.multiply)

    @bl.torch.op("blocklang_tests::tuned")
    def double(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        tuned[flat_grid](x, out, x.numel(), 2.0)
        return out

    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        assert double(mode.from_tensor(torch.ones(3, 5))).shape == (3, 5)
    assert not tuned.cache
    assert double(torch.ones(70)).tolist() == [2.0] * 70
