"""RulePenalty: a loss that grows with what the rules are broken by."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import torch
from torch import nn

from gdpnet.checks import check_choice
from gdpnet.errors import InputError, RuleError
from gdpnet.ir.batch import as_batch
from gdpnet.ir.curves import Curves
from gdpnet.ir.data import RuleData
from gdpnet.ir.prices import unbroken
from gdpnet.ir.semantics import DisjointSets, enforced
from gdpnet.ir.table import RowValues
from gdpnet.model import RuleModel

# Choices of disjuncts that logic allows are all compared, for every sample; not more than this.
_MOST_CHOICES = 10_000
# Curves that fall from infinity are lines below this: slopes that a training can do with.
_INNER = 1e-6


class RulePenalty(nn.Module):
    """Penalty for broken rules: the soft alternative to a projection, and what to compare it with.

        weight * (sum over active rules of softmin over disjuncts of v
                  + violations of global constraints, bounds and integrality)

    where `v` sums the violations of a disjunct's rows, each relative to `max(1, |b|, max|a|)` of
    the row as in `RuleModel.violation` (all of these are 1 in the cooling task). A disjunction
    nested in a disjunct adds its own softmin to the `v` of its parent. Rules that logic ties
    together count as one: its disjuncts are the choices of theirs that the propositions allow.
    Where propositions allow none, whatever y is, they are left out. Rules that may be broken at a
    price count as the others do; prices are left out.

    The plain soft-min, `-t log sum exp(-v / t)`, falls below 0 where a disjunct holds, and goes on
    pulling at others that nearly do. Here it is

        softmin(v) = -t log(1 - prod(1 - exp(-v / t)))

    which is exactly 0, with gradient 0, where a disjunct holds, and positive elsewhere (down to
    rounding, 1e-16 of `t`). It lies between the plain one and the least `v`; where every `v` is
    well above `t` it equals the plain one up to terms of `t exp(-v / t)`. For a rule with one
    disjunct it is `v` itself.

    Differentiable in y and, through the coefficients of the rows, in x; whether a rule is active
    has no gradient.

    Args:
        rules: rules without auxiliaries: the best value of one would take a program a sample.
        weight: of the penalty.
        temperature: of the soft-min, in the unit of `v`; at most `t log(disjuncts)` is lost.
        reduction: over the samples, `"mean"`, `"sum"` or `"none"`.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> from gdpnet.nn import RulePenalty
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> penalty = RulePenalty(gdpnet.RuleModel(m, outputs=[m.y]), reduction="none")
        >>> [round(v, 6) for v in penalty(torch.tensor([[2.0], [4.5], [11.0]])).tolist()]
        [0.0, 0.714286, 0.2]
    """

    def __init__(
        self,
        rules: RuleModel,
        weight: float = 2.0,
        temperature: float = 1e-2,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        if not isinstance(rules, RuleModel):
            raise InputError(f"rules: expected a gdpnet.RuleModel, got {type(rules).__name__}.")
        if rules.auxiliary_names:
            raise RuleError(
                f"RulePenalty: {', '.join(rules.auxiliary_names[:8])} are no outputs, and their "
                "best value is not known without solving a program for every sample. Write the "
                "rules in outputs alone (substitute what a Var stands for), or make them outputs."
            )
        if not _is_number(weight) or weight < 0:
            raise InputError(f"weight: expected a finite number >= 0, got {weight!r}.")
        if not _is_number(temperature) or temperature <= 0:
            raise InputError(f"temperature: expected a finite number > 0, got {temperature!r}.")
        check_choice("reduction", reduction, ("mean", "sum", "none"))
        self.rules = rules
        self.weight = float(weight)
        self.temperature = float(temperature)
        self.reduction = reduction
        self._curves = Curves(rules.data.rows, _INNER) if rules.data.curved else None
        data = unbroken(rules.data)  # a penalty is a price itself: no other buys a rule off
        self._always = _Always(data)
        self._tied = [_Tied(data, clauses) for clauses in _tied_clauses(data)]
        tied = {r for group in self._tied for r in group.rules}
        self._alone = _Alone(data, [r for r in range(len(rules.names)) if r not in tied])

    def forward(self, y: Any, x: Any = None) -> torch.Tensor:
        """The penalty of outputs.

        Args:
            y: outputs, `... x d`.
            x: inputs, `... x p`; a single one of shape `p` is used for all samples; None where the
                rules have none.

        Returns:
            A scalar, or `...` with `reduction="none"`, in the type of y.
        """
        batch = as_batch(x, y, self.rules.input_names, self.rules.output_names, on_device=True)
        evaluated = self.rules.evaluate(batch.x)
        self.rules.refuse_unusable(evaluated)
        violation = _violation(replace(evaluated.rows, curves=self._curves), batch.y)
        penalty = self._always(violation, batch.y)
        penalty = penalty + self._alone(violation, evaluated.clauses, self.temperature)
        for group in self._tied:
            penalty = penalty + group(violation, evaluated.clauses, self.temperature)
        penalty = self.weight * penalty
        if self.reduction == "none":
            return batch.origin.restore(penalty, batch.origin.dtype)
        total = penalty.mean() if self.reduction == "mean" else penalty.sum()
        return batch.origin.put(total, batch.origin.dtype)

    def extra_repr(self) -> str:
        """What `print` shows between the brackets."""
        return (
            f"rules={len(self.rules.names)}, weight={self.weight:g}, "
            f"temperature={self.temperature:g}, reduction={self.reduction!r}"
        )


def soft_min(value: torch.Tensor, temperature: float) -> torch.Tensor:
    """Smooth least of non-negative numbers that is 0 where one of them is (see `RulePenalty`).

    Args:
        value: `... x k`; infinity where there is none.
        temperature: above 0.

    Returns:
        `...`.
    """
    scaled = value / temperature
    holds = (scaled == 0.0).any(-1)
    # The logarithm below has no finite slope at 0; there the answer is known.
    scaled = scaled.masked_fill(holds.unsqueeze(-1), 1.0)
    # 1 - prod(1 - e^-u) = sum e^-u_k prod_{j<k} (1 - e^-u_j): no term is lost however large u is.
    others = torch.log(-torch.expm1(-scaled))
    least = -temperature * torch.logsumexp(others.cumsum(-1) - others - scaled, -1)
    return least.clamp(min=0.0).masked_fill(holds, 0.0)


def _violation(rows: RowValues, y: torch.Tensor) -> torch.Tensor:
    """Scaled violation of each row, with slope 0 where it is just met, `batch x rows`."""
    excess = rows.excess(y)
    return torch.where(rows.equality, excess.abs(), excess.relu()) / rows.scale()


class _Tables:
    """Constant tensors, on every device that was asked for once.

    Not buffers: `half()` on the model around must not round bounds.
    """

    def __init__(self, **tensors: torch.Tensor) -> None:
        self._on = {torch.device("cpu"): tensors}

    def at(self, device: torch.device) -> dict[str, torch.Tensor]:
        if device not in self._on:
            source = self._on[torch.device("cpu")]
            self._on[device] = {name: tensor.to(device) for name, tensor in source.items()}
        return self._on[device]


class _Always:
    """What holds whatever the inputs: global rows, bounds, whole numbers."""

    def __init__(self, data: RuleData) -> None:
        outputs = list(enumerate(data.columns[: data.outputs]))
        bounds = [(j, 1.0, c.upper) for j, c in outputs if c.upper < math.inf]
        bounds += [(j, -1.0, -c.lower) for j, c in outputs if c.lower > -math.inf]
        bound = torch.tensor([bound for *_, bound in bounds], dtype=torch.float64)
        self._tables = _Tables(
            rows=_indices(data.global_rows),
            columns=_indices([j for j, _, _ in bounds]),
            sign=torch.tensor([sign for _, sign, _ in bounds], dtype=torch.float64),
            bound=bound,
            scale=bound.abs().clamp(min=1.0),
            whole=_indices([j for j, c in outputs if c.integer]),
        )

    def __call__(self, violation: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Sum of violations, `batch`."""
        at = self._tables.at(y.device)
        beyond = y.index_select(1, at["columns"]) * at["sign"] - at["bound"]
        total = (beyond.relu() / at["scale"]).sum(1) + violation.index_select(1, at["rows"]).sum(1)
        if len(at["whole"]):
            whole = y.index_select(1, at["whole"])
            total = total + (whole - whole.detach().round()).abs().sum(1)
        return total


class _Alone:
    """Rules that no proposition speaks about."""

    def __init__(self, data: RuleData, rules: Sequence[int]) -> None:
        self._booleans = len(data.booleans)
        pairs = [(k, row) for k, b in enumerate(data.booleans) for row in b.true_rows]
        self._tables = _Tables(
            boolean=_indices([k for k, _ in pairs]), row=_indices([row for _, row in pairs])
        )
        top, *nested = _levels(data, [data.rules[r].clause for r in rules])
        self._top = _Level(data, top)
        self._nested = [_Level(data, clauses) for clauses in reversed(nested)]

    def __call__(
        self, violation: torch.Tensor, active: torch.Tensor, temperature: float
    ) -> torch.Tensor:
        """Sum over the rules, `batch`."""
        at = self._tables.at(violation.device)
        # The last column stands for a disjunct that a shorter rule does not have.
        disjuncts = violation.new_zeros(len(violation), self._booleans + 1)
        disjuncts[:, -1] = math.inf
        disjuncts = disjuncts.index_add(1, at["boolean"], violation.index_select(1, at["row"]))
        for level in self._nested:
            inner = level(disjuncts, active, temperature)
            disjuncts = disjuncts.index_add(1, level.guards(disjuncts.device), inner)
        return self._top(disjuncts, active, temperature).sum(1)


class _Level:
    """Disjunctions of one depth of nesting, measured together."""

    def __init__(self, data: RuleData, clauses: Sequence[int]) -> None:
        booleans = [[k - 1 for k in data.clauses[c].literals] for c in clauses]
        self._width = max(map(len, booleans), default=1)
        padding = len(data.booleans)
        padded = [row + [padding] * (self._width - len(row)) for row in booleans]
        self._tables = _Tables(
            clauses=_indices(clauses),
            guards=_indices([data.clauses[c].guard for c in clauses]),
            literals=_indices([k for row in padded for k in row]),
        )

    def guards(self, device: torch.device) -> torch.Tensor:
        """Booleans of the disjuncts that they are nested in, `clauses`."""
        return self._tables.at(device)["guards"]

    def __call__(
        self, disjuncts: torch.Tensor, active: torch.Tensor, temperature: float
    ) -> torch.Tensor:
        """Violation of each, 0 where it is inactive, `batch x clauses`."""
        at = self._tables.at(disjuncts.device)
        shape = (len(disjuncts), len(at["clauses"]), self._width)
        values = disjuncts.index_select(1, at["literals"]).view(shape)
        return soft_min(values, temperature) * active[:, at["clauses"]]


class _Tied:
    """Rules that propositions tie together: one soft-min over the choices that are allowed.

    Which choices those are depends on the clauses that apply. They are listed when a combination of
    clauses is first met, and kept.
    """

    def __init__(self, data: RuleData, clauses: Sequence[int]) -> None:
        self._data = data
        self._clauses = clauses
        self._conditional = [k for k in clauses if data.clauses[k].conditions]
        self.rules = [r for r, rule in enumerate(data.rules) if rule.clause in clauses]
        self._untied = _Alone(data, self.rules)
        self._choices: dict[tuple[bool, ...], _Tables] = {}
        self._choices_at((True,) * len(self._conditional))  # too many are refused before training

    def __call__(
        self, violation: torch.Tensor, active: torch.Tensor, temperature: float
    ) -> torch.Tensor:
        """Violation of the allowed choice that is nearest, `batch`."""
        total = violation.new_zeros(len(violation))
        for pattern, samples in _patterns(active[:, self._conditional]):
            rows = self._choices_at(pattern).at(violation.device)["rows"]
            if len(rows):
                least = soft_min(violation[samples] @ rows.T, temperature)
            else:
                least = self._untied(violation[samples], active[samples], temperature)
            total = total.index_copy(0, samples, least)
        return total

    def _choices_at(self, pattern: tuple[bool, ...]) -> _Tables:
        """Rows that each allowed choice enforces: `rows`, 0 or 1, `choices x rows`."""
        if pattern not in self._choices:
            off = {k for k, on in zip(self._conditional, pattern, strict=True) if not on}
            listed = self._list([k for k in self._clauses if k not in off])
            rows = torch.zeros(len(listed), len(self._data.rows), dtype=torch.float64)
            for choice, enforced in enumerate(listed):
                rows[choice, sorted(enforced)] = 1.0
            self._choices[pattern] = _Tables(rows=rows)
        return self._choices[pattern]

    def _list(self, clauses: Sequence[int]) -> list[frozenset[int]]:
        found: dict[frozenset[int], None] = {}
        for count, values in enumerate(_assignments(self._data, clauses)):
            if count == _MOST_CHOICES:
                names = [self._data.rules[r].name for r in self.rules]
                raise RuleError(
                    f"RulePenalty: logic ties {len(names)} rules together ({', '.join(names[:8])}),"
                    f" and more than {_MOST_CHOICES} choices of their disjuncts are too many to "
                    "compare for every sample. gdpnet.project needs no such list."
                )
            if values is not None:
                literals = [k + 1 if true else -k - 1 for k, true in values.items()]
                found[frozenset(enforced(self._data.booleans, literals))] = None
        return list(found)


def _tied_clauses(data: RuleData) -> list[list[int]]:
    """Clauses that share booleans, where a proposition is among them."""
    sets = DisjointSets()
    named = [[abs(n) - 1 for n in c.literals] + [c.guard] * (c.guard >= 0) for c in data.clauses]
    for booleans in named:
        sets.join(booleans)
    groups: dict[Hashable, list[int]] = {}
    for index, booleans in enumerate(named):
        if booleans:
            groups.setdefault(sets.find(booleans[0]), []).append(index)
    return [group for group in groups.values() if any(data.clauses[k].logic for k in group)]


def _assignments(data: RuleData, clauses: Sequence[int]) -> Iterator[dict[int, bool] | None]:
    """Truth values that satisfy clauses, as few as needed; None for each attempt that fails.

    All of them together cover every way to satisfy the clauses: what is not decided may be false.
    """
    required = [(data.clauses[k].guard, data.clauses[k].literals) for k in clauses]
    # Rows that hold when a boolean is false make both of its values matter.
    switches = {k for _, literals in required for k in (abs(v) - 1 for v in literals)}
    required += [(-1, (k + 1, -k - 1)) for k in sorted(switches) if data.booleans[k].false_rows]
    stack: list[dict[int, bool]] = [{}]
    while stack:
        values = stack.pop()
        shortest: list[int] | None = None
        for guard, literals in required:
            if guard >= 0 and not values.get(guard, False):
                continue
            if any(values.get(abs(v) - 1) == (v > 0) for v in literals):
                continue
            undecided = [v for v in literals if abs(v) - 1 not in values]
            if shortest is None or len(undecided) < len(shortest):
                shortest = undecided
        if not shortest:
            yield values if shortest is None else None
            continue
        for k, literal in enumerate(shortest):
            # Where an earlier literal is true, its own branch has the case already.
            earlier = {abs(v) - 1: v < 0 for v in shortest[:k]}
            stack.append({**values, **earlier, abs(literal) - 1: literal > 0})


def _levels(data: RuleData, clauses: Sequence[int]) -> list[list[int]]:
    """Clauses, those nested in their disjuncts, and so on."""
    levels = [list(clauses)]
    while levels[-1]:
        levels.append(
            [
                nested
                for clause in levels[-1]
                for literal in data.clauses[clause].literals
                for nested in data.guarded.get(literal - 1, ())
            ]
        )
    return levels[:-1] or [[]]


def _patterns(mask: torch.Tensor) -> Iterator[tuple[tuple[bool, ...], torch.Tensor]]:
    """The different rows of a mask, `batch x k`, and the samples that have them."""
    if not mask.numel():
        yield (), torch.arange(len(mask), device=mask.device)
        return
    different, which = mask.unique(dim=0, return_inverse=True)
    for k, pattern in enumerate(different.tolist()):
        yield tuple(pattern), (which == k).nonzero().flatten()


def _indices(values: Sequence[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
