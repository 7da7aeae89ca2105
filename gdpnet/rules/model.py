"""RuleModel: the rules of a Pyomo.GDP model, ready for batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import torch

from gdpnet.errors import InputError, RuleError
from gdpnet.ir.atoms import Evaluator
from gdpnet.ir.batch import Batch, as_batch, as_tensor, name_rows
from gdpnet.ir.data import RuleData
from gdpnet.ir.satisfaction import Satisfaction
from gdpnet.ir.table import RowTable, RowValues
from gdpnet.rules import _describe, _files

if TYPE_CHECKING:
    from pyomo.core.base.block import BlockData

    from gdpnet.explain.explanation import Explanation

# Samples are measured in pieces of this size, so that memory stays flat for any batch.
_PIECE = 16384


@dataclass(frozen=True)
class Evaluated:
    """The rules for a batch of inputs.

    Attributes:
        rows: coefficients and right sides.
        clauses: which clauses apply, bool `batch x clauses`.
        rules: which rules are active, bool `batch x rules`.
    """

    rows: RowValues
    clauses: torch.Tensor
    rules: torch.Tensor


class RuleModel:
    """Rules about the outputs of a network, read from a Pyomo.GDP model.

    Every active Disjunction that is not nested is a rule, in declaration order; so is a Constraint
    with a condition. Every other active Constraint, and the bounds of the Vars, hold always. The
    Suffix `active_when` says when a rule applies; a rule without an entry always does. A Var that
    is no output is an auxiliary: it must exist such that everything holds, and costs nothing.

    It is a snapshot: the Pyomo model is never changed, and later edits of it are not seen.

    Args:
        model: a ConcreteModel or Block.
        outputs: Vars, or whole IndexedVars, in the order of the columns of y. `"continuous"`: all
            continuous Vars that stand in active rules or constraints and are not fixed, in
            declaration order, a Block's own before those of Blocks in it; binaries and integers
            are auxiliaries then.
        inputs: mutable Params, or whole indexed ones, in the order of the columns of x. Other
            mutable Params are constants with the value they have now.
        input_bounds: range of the inputs, as `{name: (low, high)}`, as a ComponentMap of Params, or
            as one pair for each input; used to prune what can never happen.

    Example:
        >>> import pyomo.environ as pyo
        >>> from pyomo.gdp import Disjunction
        >>> import gdpnet, torch
        >>> m = pyo.ConcreteModel()
        >>> m.Ta = pyo.Param(mutable=True, initialize=20.0)
        >>> m.f = pyo.Var(bounds=(0, 1))
        >>> m.c = pyo.Var(bounds=(0, 1))
        >>> m.hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
        >>> m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
        >>> m.active_when[m.hot] = m.Ta >= 28
        >>> rules = gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.Ta])
        >>> x = torch.tensor([[20.0], [30.0]])
        >>> rules.active(x).tolist()
        [[False], [True]]
        >>> rules.satisfied(torch.tensor([[0.1, 0.1], [0.1, 0.1]]), x).tolist()
        [True, False]
    """

    data: RuleData
    """What was read, as plain data."""

    def __init__(
        self,
        model: BlockData,
        outputs: Sequence[Any] | str,
        inputs: Sequence[Any] = (),
        input_bounds: Mapping[Any, Any] | Sequence[Any] | None = None,
    ) -> None:
        from gdpnet.rules._read import read  # the only place that needs Pyomo

        self._adopt(read(model, outputs, inputs, input_bounds))

    @classmethod
    def from_data(cls, data: RuleData) -> RuleModel:
        """A rule model of data that was read or loaded before."""
        rules = cls.__new__(cls)
        rules._adopt(data)
        return rules

    def __reduce__(self) -> tuple[Any, ...]:
        return RuleModel.from_data, (self.data,)

    def __deepcopy__(self, memo: Any) -> RuleModel:
        return self  # nothing in it ever changes

    def _adopt(self, data: RuleData) -> None:
        self.data = data
        self._kept: dict[Any, Any] = {}
        self.table = RowTable(data.rows, len(data.columns))
        self.satisfaction = Satisfaction(data)

    def kept(self, what: Hashable, make: Callable[[RuleModel], Any]) -> Any:
        """Something made from the rules, such as an engine, which lives as long as they do.

        Args:
            what: its name.
            make: makes it from the rules when it is first asked for.
        """
        try:
            return self._kept[what]
        except KeyError:
            return self._kept.setdefault(what, make(self))

    # ---- names ---------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the rules: columns of `active`, `violation` and `Projection.disjunct`."""
        return tuple(rule.name for rule in self.data.rules)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return tuple(column.name for column in self.data.columns[: self.data.outputs])

    @cached_property
    def auxiliary_names(self) -> tuple[str, ...]:
        """Names of the Vars that are no outputs."""
        return tuple(column.name for column in self.data.columns[self.data.outputs :])

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the columns of x."""
        return self.data.inputs

    @property
    def lower(self) -> torch.Tensor:
        """Lower bounds of the outputs, `d`, float64; -inf where there is none."""
        return self.satisfaction.lower.clone()

    @property
    def upper(self) -> torch.Tensor:
        """Upper bounds of the outputs, `d`, float64; inf where there is none."""
        return self.satisfaction.upper.clone()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything the rules say; equal rules have equal fingerprints."""
        return _files.fingerprint(self.data)

    # ---- evaluation ----------------------------------------------------------------------

    def conditions_hold(self, x: torch.Tensor) -> torch.Tensor:
        """Which conditions hold.

        Args:
            x: inputs, `batch x p`, float64.

        Returns:
            bool `batch x conditions`.
        """
        evaluate = Evaluator(x.detach())
        hold = torch.ones(len(x), len(self.data.conditions), dtype=torch.bool, device=x.device)
        for k, condition in enumerate(self.data.conditions):
            if condition.tree is not None:
                hold[:, k] = evaluate(condition.tree)
            elif condition.function is not None:
                hold[:, k] = _called_condition(condition.owner, condition.function, x.detach())
        return hold

    def evaluate(self, x: torch.Tensor) -> Evaluated:
        """Rows and activation for a batch; rows are differentiable in x.

        Args:
            x: inputs, `batch x p`, float64.
        """
        hold = self.conditions_hold(x)
        clauses = torch.ones(len(x), len(self.data.clauses), dtype=torch.bool, device=x.device)
        for index, clause in enumerate(self.data.clauses):
            for condition in clause.conditions:
                clauses[:, index] &= hold[:, condition]
        rules = clauses[:, [rule.clause for rule in self.data.rules]]
        return Evaluated(self.table.evaluate(x), clauses, rules)

    def refuse_unusable(self, values: RowValues) -> None:
        """Raise where a coefficient is NaN or infinite, naming constraint and samples."""
        bad = values.unusable()
        if not bool(bad.any()):
            return
        rows = (~values.bound.isfinite()).any(0)
        if len(values.varying):
            rows[values.varying] |= (~values.coefficients.isfinite()).any(2).any(0)
        names = dict.fromkeys(self.data.rows[i].name for i in rows.nonzero().flatten().tolist())
        raise InputError(
            f"x: the coefficients of {', '.join(names)} are not finite for {name_rows(bad)}. "
            "Check the expression for a division by zero or a logarithm at such inputs."
        )

    def active(self, x: Any) -> torch.Tensor:
        """Which rules apply.

        Args:
            x: inputs, `... x p`.

        Returns:
            bool `... x rules`.
        """
        batch = as_batch(
            x, None, self.input_names, self.output_names, inputs_only=True, on_device=True
        )
        hold = self.conditions_hold(batch.x)
        rules = torch.ones(len(hold), len(self.data.rules), dtype=torch.bool, device=hold.device)
        for column, rule in enumerate(self.data.rules):
            for condition in self.data.clauses[rule.clause].conditions:
                rules[:, column] &= hold[:, condition]
        return batch.restore(rules)

    def satisfied(self, y: Any, x: Any = None, tol: float = 1e-6) -> torch.Tensor:
        """Whether active rules, propositions, global constraints and bounds hold together.

        With auxiliaries: for some value of theirs.

        Args:
            y: outputs, `... x d`.
            x: inputs, `... x p`, or None where there are none.
            tol: absolute, after a row was scaled by `max(1, |b|, max|a|)`.

        Returns:
            bool `...`.
        """
        if not (isinstance(tol, Real) and tol >= 0 and math.isfinite(tol)):
            raise InputError(f"tol: expected a finite number >= 0, got {tol!r}.")
        batch = self._batch(x, y)
        pieces = [self._satisfied(piece, tol) for piece in self._pieces(batch)]
        return batch.restore(torch.cat(pieces))

    def _satisfied(self, batch: Batch, tol: float) -> torch.Tensor:
        if self.is_plain:
            violation, globally = self._measure_plain(batch)
            return (violation.amax(1) <= tol if self.names else True) & (globally <= tol)
        from gdpnet.solve import _existence

        return _existence.satisfied(self, batch, tol)

    def violation(self, y: Any, x: Any = None) -> torch.Tensor:
        """How far each rule is from holding.

        Args:
            y: outputs, `... x d`.
            x: inputs, `... x p`, or None where there are none.

        Returns:
            `... x rules`: least over the disjuncts of the largest scaled residual of their rows;
            0 where the rule holds or is inactive.
        """
        return self.measure(y, x)[0]

    def global_violation(self, y: Any, x: Any = None) -> torch.Tensor:
        """Largest scaled residual of global constraints, bounds and integrality.

        Also what no single rule explains: where every rule holds by itself but not together (the
        propositions, or one value of the auxiliaries for all), how far that is from holding. So
        `satisfied(tol)` means that this and all of `violation` are at most `tol`.

        Args:
            y: outputs, `... x d`.
            x: inputs, `... x p`, or None where there are none.

        Returns:
            `...`.
        """
        return self.measure(y, x)[1]

    def measure(self, y: Any, x: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """`violation` and `global_violation` at once: logic and auxiliaries are searched for both.

        Args:
            y: outputs, `... x d`.
            x: inputs, `... x p`, or None where there are none.

        Returns:
            `... x rules` and `...`.
        """
        batch = self._batch(x, y)
        pieces = zip(*map(self._measure, self._pieces(batch)), strict=True)
        each, globally = (batch.restore(torch.cat(piece), batch.dtype) for piece in pieces)
        return each, globally

    def explain(
        self, yhat: Any, x: Any = None, weights: Any = None
    ) -> Explanation | list[Explanation]:
        """Which rules and constraints move a prediction, by name.

        Args:
            yhat: one prediction, `d`, or several, `batch x d`.
            x: inputs, `p` or `batch x p`, or None where there are none.
            weights: of the outputs in the distance, as in `gdpnet.project`.

        Returns:
            An `Explanation` to print, show in a notebook or read by attribute; a list of them for
            several predictions.

        Example:
            >>> import pyomo.environ as pyo, gdpnet
            >>> m = pyo.ConcreteModel()
            >>> m.y = pyo.Var(bounds=(0, 10))
            >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
            >>> told = gdpnet.RuleModel(m, outputs=[m.y]).explain([4.5])
            >>> told.moved[0].after, told.rules[0].tight[0].text, told.rules[0].tight[0].rate
            (3.0, 'y <= 3', 1.0)
            >>> print(told.rules[0].tight[0])
            y <= 3 is just met; each unit of it costs 1, 1.5 of the distance
        """
        from gdpnet.explain import explaining

        found = explaining.explain(self, yhat, x, weights)
        return found if as_tensor(yhat, self.output_names, "yhat").dim() > 1 else found[0]

    def explain_conflict(self, x: Any = None) -> list[str] | list[list[str]]:
        """Rules, constraints and bounds that contradict each other, none of them superfluous.

        None of them can be left out: without any one of them the rest can be satisfied. Rules are
        named only where global constraints, bounds and whole numbers do not contradict each other
        by themselves.

        Args:
            x: inputs of one sample, `p`, or of several, `batch x p`.

        Returns:
            Names, empty where nothing contradicts; a list of such lists for several samples.
        """
        from gdpnet.solve import _conflict

        batch = as_batch(x, None, self.input_names, self.output_names, inputs_only=True)
        evaluated = self.evaluate(batch.x if self.input_names else batch.x.reshape(1, 0))
        self.refuse_unusable(evaluated.rows)
        found = [_conflict.explain(self, evaluated, i) for i in range(len(evaluated.rows.bound))]
        return found if len(batch.shape) and self.input_names else found[0]

    # ---- inside --------------------------------------------------------------------------

    @cached_property
    def is_plain(self) -> bool:
        """Whether rows alone decide: no auxiliaries, and no logic over indicators."""
        tied = any(b.tied for b in self.data.booleans)
        return not (self.auxiliary_names or tied or any(c.logic for c in self.data.clauses))

    def _batch(self, x: Any, y: Any) -> Batch:
        return as_batch(x, y, self.input_names, self.output_names, on_device=True)

    def _pieces(self, batch: Batch) -> list[Batch]:
        size = max(1, len(batch.y))
        return [
            Batch(batch.x[k : k + _PIECE], batch.y[k : k + _PIECE], batch.shape, batch.dtype)
            for k in range(0, size, _PIECE)
        ]

    def _measure(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Violation, `batch x rules`, and global violation, `batch`."""
        if self.is_plain:
            return self._measure_plain(batch)
        from gdpnet.solve import _existence

        return _existence.measure(self, batch)

    def _measure_plain(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        evaluated = self.evaluate(batch.x)
        self.refuse_unusable(evaluated.rows)
        residual = evaluated.rows.residual(batch.y)
        booleans = self.satisfaction.of_booleans(residual, evaluated.clauses)
        return (
            self.satisfaction.of_rules(booleans, evaluated.rules),
            self.satisfaction.of_globals(residual, batch.y),
        )

    # ---- files and display ---------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the rules to a file that needs no Pyomo to load (see `gdpnet.load_rules`).

        A condition that is a Python function cannot be written down: loading asks for it again, by
        the name of its rule.

        Args:
            path: file to write; JSON.
        """
        _files.save(self.data, path)

    def __repr__(self) -> str:
        return _describe.as_text(self.data)

    def _repr_html_(self) -> str:
        return _describe.as_html(self.data)


def load_rules(path: str | PathLike[str], conditions: Mapping[str, Any] | None = None) -> RuleModel:
    """Rules that `RuleModel.save` wrote; Pyomo is not needed.

    Args:
        path: file to read.
        conditions: functions `x -> bool (batch,)` by the name of the component they belong to,
            for conditions that could not be saved.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, tempfile, os
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> path = os.path.join(tempfile.mkdtemp(), "rules.json")
        >>> rules.save(path)
        >>> gdpnet.load_rules(path).fingerprint == rules.fingerprint
        True
    """
    return RuleModel.from_data(_files.load(path, conditions or {}))


def _called_condition(owner: str, function: Any, x: torch.Tensor) -> torch.Tensor:
    value = function(x)
    if not isinstance(value, torch.Tensor):
        try:
            value = torch.as_tensor(value, device=x.device)
        except (TypeError, ValueError, RuntimeError):
            raise RuleError(
                f"active_when of '{owner}': the function must return a bool tensor of shape "
                f"({len(x)},), got {type(value).__name__}."
            ) from None
    if value.dtype != torch.bool or value.shape != (len(x),):
        raise RuleError(
            f"active_when of '{owner}': the function must return a bool tensor of shape "
            f"({len(x)},), got {value.dtype} of shape {tuple(value.shape)}."
        )
    return value
