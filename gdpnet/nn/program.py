"""ProgramLayer: any parametric convex program of Pyomo as a layer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from gdpnet.checks import check_choice
from gdpnet.errors import (
    ConflictError,
    DoubtfulGradientWarning,
    IdentityGradientWarning,
    InputError,
    SolverError,
)
from gdpnet.extras import need
from gdpnet.ir.batch import Origin, as_tensor, refuse_nonfinite, to_cpu
from gdpnet.lp.program import Outcome
from gdpnet.relaxation.parametric import AtomTable, ParametricProgram
from gdpnet.relaxation.regularised import regularised
from gdpnet.solve.program import ConicPrograms, ProgramSolver, as_tensors
from gdpnet.solve.status import Status

Tensor = torch.Tensor

_STATUS = np.full(len(Outcome), Status.UNSOLVED, dtype=np.int8)
_STATUS[Outcome.OPTIMAL] = Status.PROJECTED
_STATUS[Outcome.INFEASIBLE] = Status.CONFLICT


@dataclass(frozen=True)
class ProgramInfo:
    """How the programs of a batch were solved.

    Attributes:
        status: codes of `gdpnet.Status`, int8 `...`: PROJECTED where the program was solved,
            CONFLICT where it is infeasible, UNSOLVED where it is unbounded or the solver failed,
            ERROR where the sample could not be used.
        value: what the Objective is, float64 `...`; NaN where there is no solution.
        doubtful: bool `...`, where numbers of very different size leave open which rows are tight,
            and with it six digits of the outputs, of quadratic programs and those of second-order
            cones.
    """

    status: Tensor
    value: Tensor
    doubtful: Tensor


class ProgramLayer(nn.Module):
    """The solution of a convex program of Pyomo as a function of its Params.

    Linear programs are solved by HiGHS, to a vertex; quadratic and other convex ones by Clarabel.
    What the program minimises may be linear, quadratic or convex, and so may be its constraints, as
    far as convexity can be proved from the expressions. With a program that Pyomo.GDP or gdpnet
    convexified, one trains through exactly what one has looked at.

    The gradient is that of the same program with a quadratic term `eps / 2` on its variables, where
    what is minimised is not curved already: a vertex does not move with its costs, the solution of
    that program does. Of a program of `gdpnet.convexify` it is the gradient of `gdpnet.QP(eps)`.

    The program is read when the layer is made. It has no parameters; in the `state_dict` there is
    nothing.

    Args:
        program: a ConcreteModel with one active Objective, all Vars continuous.
        inputs: mutable Params; an item is a Param, a whole indexed one, or a list of them, and is
            one argument of the layer. Other Params keep the value they have now.
        outputs: Vars, likewise; an item is one result of the layer.
        eps: size of the quadratic term of the gradient. 0: the program itself is differentiated.
        on_conflict: of samples without a solution: `"pass"`, outputs are NaN with gradient 0 and
            the status says so; or `"raise"`.
        on_invalid: of samples with NaN or infinity: `"raise"`, or `"mark"`.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> m = pyo.ConcreteModel()
        >>> m.price = pyo.Param([1, 2], mutable=True, initialize=1.0)
        >>> m.need = pyo.Param(mutable=True, initialize=1.0)
        >>> m.y = pyo.Var([1, 2], bounds=(0, 3))
        >>> m.enough = pyo.Constraint(expr=m.y[1] + m.y[2] >= m.need)
        >>> m.cost = pyo.Objective(expr=m.price[1] * m.y[1] + m.price[2] * m.y[2])
        >>> layer = gdpnet.nn.ProgramLayer(m, inputs=[m.price, m.need], outputs=[m.y])
        >>> layer(torch.tensor([[1.0, 2.0], [3.0, 2.0]]), torch.tensor([[4.0], [1.0]])).tolist()
        [[3.0, 1.0], [0.0, 1.0]]
    """

    eps: float
    on_conflict: str
    on_invalid: str
    _outputs: list[np.ndarray]
    _names: list[tuple[str, ...]]
    _places: list[list[int]]
    _constants: Tensor
    _constant: AtomTable
    _sign: float
    _solver: ProgramSolver
    _smooth: ParametricProgram
    _derivative: ConicPrograms | None
    _told: bool

    def __init__(
        self,
        program: Any,
        *,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        eps: float = 1e-2,
        on_conflict: str = "pass",
        on_invalid: str = "raise",
    ) -> None:
        super().__init__()
        need("pyomo.environ", None, "gdpnet.nn.ProgramLayer needs")
        from gdpnet.relaxation.pyomo.adapter import read_program
        from gdpnet.relaxation.pyomo.items import columns_of, params_of

        if not isinstance(eps, Real) or isinstance(eps, bool) or not 0.0 <= eps < np.inf:
            raise InputError(f"eps: expected a number >= 0, got {eps!r}.")
        check_choice("on_conflict", on_conflict, ("pass", "raise"))
        check_choice("on_invalid", on_invalid, ("raise", "mark"))
        self.eps, self.on_conflict, self.on_invalid = float(eps), on_conflict, on_invalid
        given = params_of(program, inputs)
        wanted = columns_of(program, outputs)
        matrices = read_program(program, [v for item in wanted for v in item])
        made = matrices.program
        column = {id(v): j for j, v in enumerate(matrices.columns)}
        self._outputs = [np.array([column[id(v)] for v in item]) for item in wanted]
        self._names = [tuple(p.name for p in item) for item in given]
        place = {id(p): k for k, p in enumerate(matrices.params)}
        # A Param that stands nowhere is an argument all the same.
        self._places = [[place.get(id(p), -1) for p in item] for item in given]
        self._constants = torch.from_numpy(matrices.values())
        self._sign = float(matrices.sense)
        self._constant = matrices.constant
        self._solver = ProgramSolver(made)
        reason = self._solver.unavailable()
        if reason is not None:
            raise SolverError(reason)
        self._smooth = regularised(made, self.eps)
        self._derivative = None
        self._told = False

    def forward(self, *inputs: Any, return_info: bool = False) -> Any:
        """Solve the program for a batch.

        Args:
            inputs: one for each item of `inputs`, `... x width`, or `width` for all samples.
            return_info: also return a `ProgramInfo`.

        Returns:
            The values of each item of `outputs`, `... x width`, as a tuple where there are several;
            with `return_info` also the info. Type and device are those of the first input.
        """
        if len(inputs) != len(self._names):
            raise InputError(
                f"expected {len(self._names)} inputs ({', '.join(map(str, self._names))}), "
                f"got {len(inputs)}."
            )
        tensors = [
            as_tensor(value, names, f"input {k + 1}")
            for k, (value, names) in enumerate(zip(inputs, self._names, strict=True))
        ]
        origin, x = self._flat(tensors)
        outputs, status, value, doubtful = _Solve.apply(x, self)
        found, at = [], 0
        for columns in self._outputs:
            part = outputs[:, at : at + len(columns)]
            found.append(origin.restore(part, origin.dtype))
            at += len(columns)
        result = found[0] if len(found) == 1 else tuple(found)
        if not return_info:
            return result
        return result, ProgramInfo(*(origin.restore(part) for part in (status, value, doubtful)))

    def _flat(self, tensors: list[Tensor]) -> tuple[Origin, Tensor]:
        """The arguments as one batch of parameters, `batch x parameters`, on the CPU."""
        shapes = [t.shape[:-1] for t in tensors]
        shape = next((s for s in shapes if s.numel() != 1 or len(s)), torch.Size([]))
        first = tensors[0] if tensors else torch.zeros(0)
        origin = Origin(shape, first.dtype, None if first.is_cpu else first.device)
        x = self._constants.expand(shape.numel(), -1)
        for tensor, places, names in zip(tensors, self._places, self._names, strict=True):
            if tensor.shape[:-1] != shape and tensor.shape[:-1].numel() != 1:
                raise InputError(
                    f"input {names}: leading shape {tuple(tensor.shape[:-1])}, where another has "
                    f"{tuple(shape)}; expected the same, or a single one for all samples."
                )
            own = to_cpu(tensor).double()
            if tensor.shape[:-1] != shape:
                own = own.reshape(-1).expand(*shape, len(names))
            used = [(k, place) for k, place in enumerate(places) if place >= 0]
            if used:
                columns = own.reshape(shape.numel(), len(names))[:, [k for k, _ in used]]
                x = x.index_copy(1, torch.tensor([place for _, place in used]), columns)
        return origin, x

    def solve(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Outputs, status, value and doubts of a flat batch of parameters."""
        if self.on_invalid == "raise":
            refuse_nonfinite(x, "inputs", " Mend them, or pass on_invalid='mark'.")
        numbers = self._solver.program.evaluate(x)
        usable = torch.ones(len(x), dtype=torch.bool)
        for part in (x, *numbers):
            usable &= part.isfinite().all(1)
        if not bool(usable.all()):
            if self.on_invalid == "raise":
                raise InputError(
                    f"inputs: coefficients of the program are no finite numbers in "
                    f"{int((~usable).sum())} of {len(x)} samples. Mend them, or pass "
                    "on_invalid='mark'."
                )
            numbers = type(numbers)(*(part[usable] for part in numbers))
        found = self._solver.solve(numbers)
        columns = np.concatenate(self._outputs)
        outputs = torch.full((len(x), len(columns)), torch.nan, dtype=torch.float64)
        status = torch.full((len(x),), int(Status.ERROR), dtype=torch.int8)
        value = torch.full((len(x),), torch.nan, dtype=torch.float64)
        outputs[usable] = torch.from_numpy(found.points[:, columns])
        status[usable] = torch.from_numpy(_STATUS[found.outcome])
        value[usable] = torch.from_numpy(found.value)
        doubtful = torch.zeros(len(x), dtype=torch.bool)
        doubtful[usable] = torch.from_numpy(found.doubtful)
        value = self._sign * (value + self._constant.evaluate(x)[:, 0])
        if self.on_conflict == "raise" and bool((status != Status.PROJECTED).any()):
            wrong = int((status != Status.PROJECTED).nonzero()[0])
            outcome = Outcome(int(found.outcome[int(usable[:wrong].sum())]))
            raise ConflictError(f"sample {wrong} has no solution: {outcome.message}.")
        return outputs, status, value, doubtful

    def pull(self, x: Tensor, gradient: Tensor, status: Tensor) -> Tensor:
        """The gradient of a loss with respect to parameters, from that of the outputs."""
        if self._derivative is None:
            self._derivative = ConicPrograms(self._smooth)
        to_x = torch.zeros_like(x)
        solved = status == Status.PROJECTED
        if not bool(solved.any()):
            return to_x
        with torch.enable_grad():
            leaf = x[solved].detach().requires_grad_()
            numbers = self._smooth.evaluate(leaf)
            columns = np.concatenate(self._outputs)
            parts, known, doubtful = self._derivative.vjp(
                numbers, columns, gradient[solved].numpy()
            )
            pairs = [
                (value, to)
                for value, to in zip(numbers, as_tensors(parts), strict=True)
                if value.requires_grad
            ]
            if pairs:
                values, to = zip(*pairs, strict=True)
                (to_x[solved],) = torch.autograd.grad(values, leaf, to)
        self._tell(known, doubtful)
        return to_x

    def _tell(self, known: np.ndarray, doubtful: np.ndarray) -> None:
        """Warn, once, of gradients that are not there, or may not be right."""
        if self._told or (known.all() and not doubtful.any()):
            return
        self._told = True
        what = "get the gradient 0: their program with the quadratic term could not be solved."
        kind: type[Warning] = IdentityGradientWarning
        if known.all():
            what = (
                "have a gradient that may be wrong: numbers of very different size leave open "
                "which rows of their program with the quadratic term are tight, and more digits "
                "did not solve it, or it is too large for them. Have it in units of about 1."
            )
            kind = DoubtfulGradientWarning
        count = np.count_nonzero(doubtful if known.all() else ~known)
        warnings.warn(
            f"{count} of {len(known)} samples of a batch {what} This is told once for a layer.",
            kind,
            stacklevel=3,
        )

    def extra_repr(self) -> str:
        """What stands in the parentheses of `repr`."""
        program = self._solver.program
        kind = "linear" if program.is_linear else "conic" if program.cones else "quadratic"
        sizes = f"{len(program.lower)} columns, {len(program.rows)} rows"
        return f"{kind}: {sizes}, eps={self.eps}"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_derivative": None}


class _Solve(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, layer: ProgramLayer) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return layer.solve(x.detach())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, ctx.layer = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(x, output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Tensor, None]:
        x, status = ctx.saved_tensors
        return ctx.layer.pull(x, gradient.contiguous(), status), None
