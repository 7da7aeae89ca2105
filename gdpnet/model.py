"""RuleModel: the rules of a Pyomo.GDP model, ready for batches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import torch

from gdpnet.errors import InputError
from gdpnet.explain import explaining
from gdpnet.explain.explanation import Explanation
from gdpnet.extras import need
from gdpnet.ir.batch import Batch, as_batch, as_tensor
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.projection import contradiction
from gdpnet.rules import describe, files
from gdpnet.solve import existence

if TYPE_CHECKING:
    from pyomo.core.base.block import BlockData


class RuleModel(Rules):
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
        prices: `{component: price}`, before the Suffix `rule_price`: what breaking a Disjunction or
            a conditional Constraint costs, or choosing a Disjunct, in units of what is minimised
            (the l1 distance, the squared l2 distance). A number from 0 on, or an expression in
            inputs. A rule without a price is hard, so is one of infinite price. Components, whole
            indexed ones, or their names.
        importances: `{component: importance}`, before the Suffix `rule_importance`: what leaving a
            rule out counts where `on_conflict="drop"` has to; positive, 1 where not given.

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

    def __init__(
        self,
        model: BlockData,
        outputs: Sequence[Any] | str,
        inputs: Sequence[Any] = (),
        input_bounds: Mapping[Any, Any] | Sequence[Any] | None = None,
        *,
        prices: Mapping[Any, Any] | None = None,
        importances: Mapping[Any, Any] | None = None,
    ) -> None:
        need("pyomo.gdp", None, "gdpnet.RuleModel(model) needs")
        from gdpnet.rules.reader import read

        numbers = {"prices": prices, "importances": importances}
        super().__init__(read(model, outputs, inputs, input_bounds, **numbers))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything the rules say; equal rules have equal fingerprints."""
        return files.fingerprint(self.data)

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
        return batch.origin.restore(rules)

    def satisfied(self, y: Any, x: Any = None, tol: float = TOLERANCES.satisfied) -> torch.Tensor:
        """Whether active rules, propositions, global constraints and bounds hold together.

        With auxiliaries: for some value of theirs. Rules that may be broken at a price are not
        asked for; `violation` has them too.

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
        return batch.origin.restore(existence.satisfied(self, batch, tol))

    def violation(self, y: Any, x: Any = None) -> torch.Tensor:
        """How far each rule is from holding.

        Args:
            y: outputs, `... x d`.
            x: inputs, `... x p`, or None where there are none.

        Returns:
            `... x rules`: least over the disjuncts of the largest scaled residual of their rows;
            0 where the rule holds or is inactive. Of a rule that may be broken at a price too.
        """
        return self.measure(y, x)[0]

    def global_violation(self, y: Any, x: Any = None) -> torch.Tensor:
        """Largest scaled residual of global constraints, bounds and integrality.

        Also what no single rule explains: where every rule holds by itself but not together (the
        propositions, or one value of the auxiliaries for all), how far that is from holding. So
        `satisfied(tol)` means that this and `violation` of all hard rules are at most `tol`.

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
        each, globally = existence.measure(self, batch)
        return batch.origin.restore(each, batch.origin.dtype), batch.origin.restore(
            globally, batch.origin.dtype
        )

    def explain(
        self, yhat: Any, x: Any = None, weights: Any = None, *, norm: str = "l1"
    ) -> Explanation | list[Explanation]:
        """Which rules and constraints move a prediction, by name.

        Args:
            yhat: one prediction, `d`, or several, `batch x d`.
            x: inputs, `p` or `batch x p`, or None where there are none.
            weights: of the outputs in the distance, as in `gdpnet.project`.
            norm: of the distance, as in `gdpnet.project`.

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
        found = explaining.explain(self, yhat, x, weights, norm)
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
        batch = as_batch(x, None, self.input_names, self.output_names, inputs_only=True)
        flat = batch.x if self.input_names else batch.x.reshape(1, 0)
        found = contradiction.explain_all(self, flat)
        return found if len(batch.origin.shape) and self.input_names else found[0]

    def _batch(self, x: Any, y: Any) -> Batch:
        return as_batch(x, y, self.input_names, self.output_names, on_device=True)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the rules to a file that needs no Pyomo to load (see `gdpnet.load_rules`).

        A condition that is a Python function cannot be written down: loading asks for it again, by
        the name of its rule.

        Args:
            path: file to write; JSON.
        """
        files.save(self.data, path)

    def __repr__(self) -> str:
        return describe.as_text(self.data)

    def _repr_html_(self) -> str:
        return describe.as_html(self.data)


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
    rules: RuleModel = RuleModel.from_data(files.load(path, conditions or {}))
    return rules
