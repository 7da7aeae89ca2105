"""A batch that was projected, and its derivative, in tensors with memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gdpnet.errors import InputError
from gdpnet.ir.batch import as_array, flat, to_cpu, to_device
from gdpnet.ir.rules import Rules

if TYPE_CHECKING:
    from gdpnet.derivative.gradients import Derivative
    from gdpnet.projection.projection import Projection

Tensor = torch.Tensor

_TWICE = (
    "A second derivative of this projection is not known: {why}. First derivatives are; second "
    "ones with respect to the prediction are 0 where rules are linear, relaxation='dnf' and the "
    "gradient is made of 'vertex' and 'straight_through'. Detach what is not meant to be "
    "differentiated twice."
)


class OperatorNode:
    """A batch that was projected, and its derivative.

    Args:
        rules: the rules.
        y: outputs in the caller's shape and type; the graph gets them, once.
        backward: the derivative, over the flat batch in float64.
        seconds: where the time of the backward pass is added.
    """

    def __init__(
        self, rules: Rules, y: Tensor | None, backward: Derivative, seconds: dict[str, float]
    ) -> None:
        self.rules, self.backward, self.seconds = rules, backward, seconds
        self._y = y

    def outputs(self, yhat: Tensor, x: Tensor | None) -> Tensor:
        """The outputs; whoever asks has them for himself, or the graph would hold itself."""
        y, self._y = self._y, None
        assert y is not None
        return y

    def pull(
        self, gradient: Tensor, x: Tensor | None, at: Tensor | None = None
    ) -> tuple[np.ndarray, Tensor | None]:
        """Gradients of a loss with respect to predictions, `batch x d`, and inputs, as these are.

        Args:
            gradient: with respect to y, `... x d`.
            x: inputs; None where they need no gradient.
            at: gradient at which what decides by its sign has decided; this one where not given.
        """
        backward = self.backward
        if at is not None:
            backward = backward.decided(flat_array(at))
        found = backward.vjp(flat_array(gradient))
        if x is None:
            return found.yhat, None
        return found.yhat, through_rows(self.rules, x, gradient.shape[:-1], found)

    def pulled(
        self, gradient: Tensor, x: Tensor | None, dtype: torch.dtype, at: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """As `pull`, that of the prediction in its type, in the shape of the gradient."""
        to_yhat, to_x = self.pull(gradient, x, at)
        return shaped(to_yhat, gradient, dtype), to_x

    def push(
        self,
        yhat: Tensor | None,
        x: Tensor | None,
        at: Tensor | None,
        inputs: Tensor | None,
        like: Tensor,
    ) -> Tensor:
        """The tangent of y: one backward pass for each output.

        Args:
            yhat: tangent of the prediction; None for 0.
            x: tangent of the inputs; None for 0.
            at: as in `pull`.
            inputs: the inputs.
            like: what has the shape, type and device of y.
        """
        shape, columns = like.shape[:-1], []
        if x is not None and inputs is not None:  # each sample by itself
            x, inputs = each(x, shape).cpu().double(), each(inputs, shape)
        for j in range(like.shape[-1]):
            one = torch.zeros(like.shape, dtype=torch.float64)
            one[..., j] = 1.0
            to_yhat, to_x = self.pull(one, None if x is None else inputs, at)
            total = torch.zeros(shape, dtype=torch.float64)
            if yhat is not None:
                moved = np.einsum("bj,bj->b", to_yhat, flat_array(yhat))
                total += torch.from_numpy(moved).reshape(shape)
            if x is not None and to_x is not None:
                total += (to_x.cpu() * x).sum(-1)
            columns.append(total)
        return to_device(torch.stack(columns, -1).type(like.dtype), like.device)

    def refuse_twice(self, by_inputs: bool) -> None:
        """Raise where the derivative is not constant nearby.

        Args:
            by_inputs: whether it is to be differentiated with respect to the inputs.
        """
        why = self.backward.changing
        if why is None and by_inputs and self.rules.table.atoms:
            why = "it goes through coefficients or right sides of rows that depend on x"
        if why is not None:
            raise InputError(_TWICE.format(why=why))


class LateNode(OperatorNode):
    """A batch that is projected when its numbers are there.

    Args:
        rules: the rules.
        solve: what projects, from tensors with memory.
    """

    projection: Projection

    def __init__(self, rules: Rules, solve: Callable[[Tensor, Tensor | None], Projection]) -> None:
        self.rules, self._solve = rules, solve
        self.backward = None  # type: ignore[assignment]

    def outputs(self, yhat: Tensor, x: Tensor | None) -> Tensor:
        """Project."""
        self.projection = self._solve(yhat, x)
        if self.projection.derivative is not None:
            self.backward = self.projection.derivative
        self.seconds = self.projection.times
        return self.projection.y


def each(x: Tensor, shape: torch.Size) -> Tensor:
    """Inputs of each sample, where one may be given for all of them."""
    return x if x.shape[:-1] == shape else x.reshape(-1).expand(*shape, -1)


def flat_array(value: Tensor) -> np.ndarray:
    """A flat batch as an array; in this order: there are devices without float64."""
    return as_array(flat(value if value.is_cpu else to_cpu(value)))


def shaped(values: np.ndarray, like: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A flat batch in the shape and on the device of another tensor."""
    tensor = torch.from_numpy(values)
    if dtype is not torch.float64 or not like.is_cpu:
        tensor = to_device(tensor.type(dtype), like.device)  # in this order: float64 may be unknown
    return tensor if like.ndim == 2 else tensor.reshape(like.shape)


def through_rows(
    rules: Rules, x: torch.Tensor, shape: torch.Size, found: Any
) -> torch.Tensor | None:
    """Gradient with respect to the inputs, through right sides, coefficients and prices.

    Which rules apply is a step in x: it contributes nothing.
    """
    leaf = to_cpu(x.detach()).requires_grad_()
    # Samples whose rows get no gradient stay out: their coefficients may be no numbers.
    taken = found.bound.any(1) | found.varying.any((1, 2))
    if found.price is not None:
        taken |= found.price.any(1)
    with torch.enable_grad():
        own = flat(each(leaf, shape))[torch.from_numpy(taken)]
        values = rules.table.evaluate(own)
        pairs = [
            (values.bound, found.bound[taken]),
            (values.coefficients, found.varying[taken]),
        ]
        if found.price is not None:
            pairs.append((rules.evaluate(own).prices, found.price[taken]))
        pairs = [(value, to) for value, to in pairs if value.requires_grad]
        if not pairs:
            return torch.zeros_like(x)
        to = [torch.from_numpy(np.ascontiguousarray(to)) for _, to in pairs]
        (gradient,) = torch.autograd.grad([value for value, _ in pairs], leaf, to)
    return to_device(gradient, x.device)
