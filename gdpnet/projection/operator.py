"""The projection as a node of torch's graph: its backward pass asks a sensitivity.

Three functions that know each other's derivatives:

    Project     (yhat, x) -> y
    Pullback    gradient of y -> gradients of yhat and x: the derivative of _Project, transposed
    Pushforward tangents of yhat and x -> tangent of y: the derivative of _Project, which is that of
                Pullback with respect to the gradient

`torch.func` calls them with tensors that have no memory, and asks for batches by `vmap`: dimensions
that samples have as well become leading dimensions of the batch, others are looped over.
`library.py` has the same as an operator that compilers and exporters keep whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.autograd import forward_ad

from gdpnet.ir.rules import Rules
from gdpnet.projection.node import (
    LateNode,
    OperatorNode,
    Tensor,
    each,
    flat_array,
    shaped,
    through_rows,
)

if TYPE_CHECKING:
    from gdpnet.projection.projection import Projection

Found = TypeVar("Found")

# Whether a transform of `torch.func` is under way.
is_transformed: Callable[[], bool] = torch._C._are_functorch_transforms_active


def aside(compute: Callable[[Any], Found]) -> Callable[[Any], Found]:
    """A method whose own tensors `torch.func` does not see: those that it makes have no memory."""

    @wraps(compute)
    def computed(self: Any) -> Found:
        if not is_transformed():
            return compute(self)
        with torch._C._DisableFuncTorch():
            return compute(self)

    return computed


class _Project(torch.autograd.Function):
    """Outputs as a function of prediction and inputs."""

    @staticmethod
    def forward(yhat: Tensor, x: Tensor | None, node: OperatorNode) -> Tensor:
        return node.outputs(yhat, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        # The derivative has numbers of its own, but for those of inputs that get a gradient: torch
        # tells who writes into these.
        ctx.yhat, ctx.x, ctx.node = inputs
        if ctx.x is not None and ctx.x.requires_grad:
            ctx.save_for_backward(ctx.x)
        if ctx.node.backward is None:
            ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        node, (wanted, through) = ctx.node, ctx.needs_input_grad[:2]
        x = ctx.saved_tensors[0] if through else None
        if not (torch.is_grad_enabled() or is_transformed() or _is_batched(gradient)):
            return _backward(gradient, x, node, ctx.yhat.dtype if wanted else None)
        found = _derive(_Pullback, gradient, None, ctx.yhat, x, node)
        return found[0] if wanted else None, found[1] if through else None, None

    @staticmethod
    def jvp(ctx: Any, yhat: Tensor | None, x: Tensor | None, _: None) -> Tensor:
        return _derive(_Pushforward, yhat, x, None, ctx.yhat, ctx.x, ctx.node)

    @staticmethod
    def vmap(info: Any, in_dims: Any, yhat: Tensor, x: Tensor | None, node: OperatorNode) -> Any:
        folded = _folded(info.batch_size, in_dims, (yhat, x))
        return _Project.apply(*folded, node), 0


class _Train(torch.autograd.Function):
    """As `_Project`, for the graph of a training step: torch calls one function less."""

    @staticmethod
    def forward(ctx: Any, yhat: Tensor, x: Tensor | None, node: OperatorNode) -> Tensor:
        ctx.yhat, ctx.x, ctx.node = yhat, x, node
        if x is not None and x.requires_grad:
            ctx.save_for_backward(x)
        return node.outputs(yhat, x)

    backward = staticmethod(_Project.backward)


def _backward(
    gradient: Tensor, x: Tensor | None, node: OperatorNode, dtype: torch.dtype | None
) -> tuple[Tensor | None, ...]:
    """The backward pass of training; `dtype` is that of the prediction where it gets a gradient."""
    started = time.perf_counter()
    incoming, backward = flat_array(gradient), node.backward
    to_yhat = to_x = None
    if x is None:
        own = backward.vjp_yhat(incoming)
    else:
        found = backward.vjp(incoming)
        own, to_x = found.yhat, through_rows(node.rules, x, gradient.shape[:-1], found)
    if dtype is not None:
        to_yhat = shaped(own, gradient, dtype)
        backward.warn_of_zeros(incoming, own)
    spent = time.perf_counter() - started
    node.seconds["backward"] = node.seconds.get("backward", 0.0) + spent
    return to_yhat, to_x, None


class _Pullback(torch.autograd.Function):
    """Gradients of prediction and inputs as a function of that of the outputs.

    It is linear in the gradient, but for `StraightThrough(inward=True)`, which decides by signs:
    those of `at`, where that is given.
    """

    @staticmethod
    def forward(
        gradient: Tensor, at: Tensor | None, yhat: Tensor, x: Tensor | None, node: OperatorNode
    ) -> tuple[Tensor, Tensor]:
        to_yhat, to_x = node.pulled(gradient, x, yhat.dtype, at)
        return to_yhat, torch.empty(0) if to_x is None else to_x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.gradient, ctx.at, ctx.yhat, ctx.x, ctx.node = inputs
        ctx.set_materialize_grads(False)
        if ctx.x is None:
            ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, yhat: Tensor | None, x: Tensor | None) -> tuple[Tensor | None, ...]:
        wanted = ctx.needs_input_grad
        ctx.node.refuse_twice(by_inputs=wanted[3])
        at = ctx.gradient if ctx.at is None else ctx.at
        x = None if ctx.x is None else x
        to_gradient = to_yhat = to_x = None
        if wanted[0] and not (yhat is None and x is None):
            to_gradient = _Pushforward.apply(yhat, x, at, ctx.yhat, ctx.x, ctx.node)
        if wanted[2]:
            to_yhat = torch.zeros_like(ctx.yhat)
        if wanted[3]:
            to_x = torch.zeros_like(ctx.x)
        return to_gradient, None, to_yhat, to_x, None

    @staticmethod
    def jvp(
        ctx: Any, gradient: Tensor | None, _at: Any, _yhat: Any, x: Tensor | None, _: Any
    ) -> Any:
        ctx.node.refuse_twice(by_inputs=x is not None)
        given = torch.zeros_like(ctx.gradient) if gradient is None else gradient
        at = ctx.gradient if ctx.at is None else ctx.at
        found = _Pullback.apply(given, at, ctx.yhat, ctx.x, ctx.node)
        return found if ctx.x is not None else (found[0], None)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *arguments: Any) -> Any:
        return _mapped(_Pullback, info.batch_size, in_dims, arguments), (0, 0)


class _Pushforward(torch.autograd.Function):
    """The tangent of the outputs as a function of those of prediction and inputs."""

    @staticmethod
    def forward(
        yhat: Tensor | None,
        x: Tensor | None,
        at: Tensor | None,
        prediction: Tensor,
        inputs: Tensor | None,
        node: OperatorNode,
    ) -> Tensor:
        return node.push(yhat, x, at, inputs, prediction)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.yhat, ctx.x, ctx.at, ctx.prediction, ctx.inputs, ctx.node = inputs
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradient is None:
            return (None,) * 6
        ctx.node.refuse_twice(by_inputs=ctx.needs_input_grad[4])
        x = None if ctx.x is None else ctx.inputs
        to_yhat, to_x = _Pullback.apply(gradient, ctx.at, ctx.prediction, x, ctx.node)
        zero = torch.zeros_like(ctx.prediction) if ctx.needs_input_grad[3] else None
        return (
            None if ctx.yhat is None else to_yhat,
            None if x is None else to_x,
            *(None, zero, None, None),
        )

    @staticmethod
    def jvp(ctx: Any, yhat: Any, x: Any, _at: Any, _prediction: Any, inputs: Any, _: Any) -> Any:
        ctx.node.refuse_twice(by_inputs=inputs is not None)
        return _Pushforward.apply(yhat, x, ctx.at, ctx.prediction, ctx.inputs, ctx.node)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *arguments: Any) -> Any:
        return _mapped(_Pushforward, info.batch_size, in_dims, arguments), 0


def attach(node: OperatorNode, yhat: Any, x: Any) -> Tensor:
    """The outputs of a node as a function of prediction and inputs.

    Args:
        node: what was projected.
        yhat: prediction as given, `... x d`.
        x: inputs as given, `... x p` or `p`; None where there are none.
    """
    tensor = x if isinstance(x, Tensor) else None
    if not isinstance(yhat, Tensor):  # only the inputs carry a gradient
        yhat = torch.empty(0)
    forwards = forward_ad._current_level >= 0  # which only `_Project` knows
    y: Tensor = (_apply if forwards else _train)(yhat, tensor, node)
    return y


def transformed(
    rules: Rules, solve: Callable[[Tensor, Tensor | None], Projection], yhat: Any, x: Any
) -> Projection:
    """A projection inside of `torch.func`, whose tensors have no memory of their own.

    Args:
        rules: the rules.
        solve: what projects, from tensors with memory.
        yhat: prediction as given.
        x: inputs as given; None where there are none.
    """
    yhat = torch.as_tensor(yhat)
    if x is not None:
        x = torch.as_tensor(x)
        if x.shape[:-1] != yhat.shape[:-1] and x.shape[:-1].numel() == 1:
            x = each(x, yhat.shape[:-1])
    node = LateNode(rules, solve)
    y = _Project.apply(yhat, x, node)
    return node.projection.with_outputs(y)


def is_recorded() -> bool:
    """Whether operations on tensors are written down, to be repeated with other numbers."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode  # late: it imports sympy

    return get_proxy_mode() is not None


def has_tangent(*tensors: Any) -> bool:
    """Whether one of them carries a derivative forwards, as `torch.autograd.forward_ad` has it."""
    return forward_ad._current_level >= 0 and any(
        isinstance(t, Tensor) and forward_ad.unpack_dual(t).tangent is not None for t in tensors
    )


# `Function.apply` binds the arguments to the signature of `forward` before it hands them on to
# this, and that takes longer than everything else here. Its other work is for torch.func alone.
_apply = super(torch.autograd.Function, _Project).apply
_train = super(torch.autograd.Function, _Train).apply


# ---- batches of torch.func ------------------------------------------------------------------


def _folded(size: int, in_dims: tuple[Any, ...], tensors: tuple[Any, ...]) -> list[Tensor | None]:
    """Tensors with the mapped dimension in front, of those that have none as well."""
    folded: list[Tensor | None] = []
    for dim, tensor in zip(in_dims, tensors, strict=False):
        if tensor is None:
            folded.append(None)
        elif dim is None:
            folded.append(tensor.unsqueeze(0).expand(size, *tensor.shape))
        else:
            folded.append(tensor.movedim(dim, 0))
    return folded


def _mapped(function: Any, size: int, in_dims: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
    """A derivative for a mapped dimension.

    The last three arguments are prediction, inputs and node. Where these have the dimension, the
    batch that was projected has it in front; where they do not, the same batch is asked repeatedly.
    """
    *tensors, node = arguments
    if in_dims[-3] is not None or in_dims[-2] is not None:
        return function.apply(*_folded(size, in_dims, tuple(tensors)), node)
    found = []
    for i in range(size):
        own = [
            tensor if dim is None else tensor.select(dim, i)
            for dim, tensor in zip(in_dims, tensors, strict=False)
        ]
        found.append(function.apply(*own, node))
    if isinstance(found[0], tuple):
        return tuple(torch.stack(part) for part in zip(*found, strict=True))
    return torch.stack(found)


def _derive(function: Any, *arguments: Any) -> Any:
    """Apply a derivative, also to batches of `is_grads_batched` and the like.

    Those are mapped in a way of their own, older than torch.func, that no Function hears of.
    """
    batched = [isinstance(a, Tensor) and _is_batched(a) for a in arguments]
    if not any(batched):
        return function.apply(*arguments)
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    plain = [
        torch._remove_batch_dim(a, level, 0, 0) if old else a
        for a, old in zip(arguments, batched, strict=True)
    ]
    size = next(len(a) for a, old in zip(plain, batched, strict=True) if old)
    in_dims = tuple(0 if old else None for old in batched)
    found = _mapped(function, size, in_dims, tuple(plain))
    if isinstance(found, tuple):
        return tuple(torch._add_batch_dim(part, 0, level) for part in found)
    return torch._add_batch_dim(found, 0, level)


_is_batched: Callable[[Tensor], bool] = torch._C._functorch.is_legacy_batchedtensor
