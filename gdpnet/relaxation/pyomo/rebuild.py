"""From rules back to a Pyomo.GDP model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pyomo.environ as pyo
import torch
from pyomo.common.modeling import unique_component_name
from pyomo.core.base.componentuid import ComponentUID
from pyomo.core.expr import inequality
from pyomo.gdp import Disjunct, Disjunction

from gdpnet.ir.data import Clause, Condition, Curve, Kind, Role, Row, RuleData, Shape
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules, called_condition
from gdpnet.relaxation.pyomo.symbolic import linear_expression, pyomo_expression
from gdpnet.rules.conditions import ACTIVE_WHEN
from gdpnet.rules.numbers import IMPORTANCES, PRICES


def pyomo_model(rules: Rules) -> Any:
    """A Pyomo.GDP model that says what the rules say.

    It has the names of the model the rules were read from: Vars, mutable Params for the inputs (at
    0, or the nearest value within their bounds), Constraints, Disjuncts and Disjunctions,
    LogicalConstraints, and the Suffixes `active_when`, `rule_price` and `rule_importance`. Mutable
    Params that were no inputs are the numbers they were when read.

    Args:
        rules: also such as were loaded from a file.

    Example:
        >>> import pyomo.environ as pyo
        >>> from pyomo.gdp import Disjunction
        >>> import gdpnet
        >>> from gdpnet.relaxation.pyomo.rebuild import pyomo_model
        >>> m = pyo.ConcreteModel()
        >>> m.top = pyo.Param(mutable=True, initialize=7.0)
        >>> m.y = pyo.Var(range(2), bounds=(0, 10))
        >>> m.gap = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] + m.y[1] >= m.top]])
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.top])
        >>> again = pyomo_model(rules)
        >>> again.gap.pprint()
        gap : Size=1, Index=None, Active=True
            Key  : Disjuncts                                : Active : XOR
            None : ['gap_disjuncts[0]', 'gap_disjuncts[1]'] :   True : True
        >>> gdpnet.RuleModel(again, [again.y], [again.top]).fingerprint == rules.fingerprint
        True
    """
    return _Builder(rules.data).model


class _Builder:
    def __init__(self, data: RuleData) -> None:
        self.data = data
        self.model = pyo.ConcreteModel()
        self.inputs = [
            self._param(name, low, high)
            for name, (low, high) in zip(data.inputs, data.input_bounds, strict=True)
        ]
        self.booleans: dict[int, Any] = {}
        self._made: dict[int, Any] = {}
        self._variables: dict[int, Any] = {}
        self._conditions: list[tuple[Any, tuple[int, ...]]] = []
        self._prices: list[tuple[Any, Coefficient]] = []
        self._importances: list[tuple[Any, float]] = []
        self.rules = {k: c for k, c in enumerate(data.clauses) if not c.logic}
        self.of_clause = {rule.clause: rule for rule in data.rules}
        self.indicators = {
            literal - 1
            for clause in self.rules.values()
            if clause.kind is Kind.DISJUNCTION
            for literal in clause.disjuncts
        }
        self.linked = self._linked_binaries()
        for k in range(data.outputs):
            self._variable(k)
        top = [k for k, clause in self.rules.items() if clause.guard < 0]
        self._fill(None, data.global_rows, top)
        for clause in data.clauses:
            if clause.logic and clause.kind is not Kind.XOR:
                self._logic(clause)
        self._suffixes()

    def _fill(self, disjunct: Any, rows: Iterable[int], rules: Iterable[int]) -> None:
        """Constraints and rules of the model or of a disjunct, in the order they were read.

        The order of rows tells it: it is that of the declarations.
        """
        items: list[tuple[int, int, Any]] = []
        for group in self._constraint_rows(rows):
            items.append((group[0], 0, group))
        last = -1
        for k in rules:
            last = max(last, min(self.data.rows_below(k), default=last))
            items.append((last, 1, k))
        for _, kind, what in sorted(items, key=lambda item: item[:2]):
            if kind == 0:
                self._constraint(what, disjunct)
            else:
                self._rule(what, disjunct)

    # ---- names ---------------------------------------------------------------------------

    def _new(self, name: str, kind: Any, within: Any = None, **options: Any) -> Any:
        """A new component of a name, in its place; in a place of its own where that is taken."""
        path = ComponentUID(name)._cids
        block = self._block(path[:-1])
        local, index = path[-1]
        key = index[0] if len(index) == 1 else index
        if block is None or not self._is_free(block, local, key, kind):
            block = None
        if block is not None and within is not None and not _is_inside(block, within):
            block = None
        if block is None:
            block = self.model if within is None else within
            local, index = unique_component_name(block, local), ()
        if not index:
            component = kind(**options)
            block.add_component(local, component)
            return component
        container = block.component(local)
        if container is None:
            container = kind(pyo.Any, **({"dense": False} if kind is pyo.Var else {}))
            block.add_component(local, container)
        value = next(iter(options.values()), None)
        if value is not None:
            container[key] = value
        return container[key]

    def _block(self, path: Iterable[tuple[str, tuple[Any, ...]]]) -> Any:
        block = self.model
        for local, index in path:
            component = block.component(local)
            if component is None:
                component = pyo.Block(pyo.Any) if index else pyo.Block()
                block.add_component(local, component)
            kind = component.ctype
            if kind not in (pyo.Block, Disjunct) or component.is_indexed() != bool(index):
                return None
            block = component[index[0] if len(index) == 1 else index] if index else component
        return block

    @staticmethod
    def _is_free(block: Any, local: str, key: Any, kind: Any) -> bool:
        taken = block.component(local)
        if taken is None:
            return not hasattr(block, local)
        return key != () and taken.ctype is kind and taken.is_indexed() and key not in taken

    def _param(self, name: str, low: float, high: float) -> Any:
        path = ComponentUID(name)._cids
        block = self._block(path[:-1])
        local, index = path[-1]
        start = min(max(0.0, low), high)
        if not index:
            param = pyo.Param(mutable=True, initialize=start, domain=pyo.Reals)
            block.add_component(local, param)
            return param
        if block.component(local) is None:
            block.add_component(local, pyo.Param(pyo.Any, mutable=True, domain=pyo.Reals))
        key = index[0] if len(index) == 1 else index
        block.component(local)[key] = start
        return block.component(local)[key]

    # ---- variables and rows --------------------------------------------------------------

    def _linked_binaries(self) -> dict[int, int]:
        """Columns that are the binary of a boolean."""
        linked = {}
        for k, boolean in enumerate(self.data.booleans):
            for row in boolean.false_rows:
                ((column, _),) = self.data.rows[row].terms
                linked[column] = k
        return linked

    def _disjunct(self, boolean: int) -> Any:
        if boolean not in self._made:
            self._made[boolean] = self._new(self.data.booleans[boolean].name, Disjunct)
        return self._made[boolean]

    def _variable(self, k: int) -> Any:
        if k not in self._variables:
            self._variables[k] = self._new_variable(k)
        return self._variables[k]

    def _new_variable(self, k: int) -> Any:
        column = self.data.columns[k]
        boolean = self.linked.get(k, -1)
        if boolean in self.indicators:
            return self._disjunct(boolean).binary_indicator_var
        variable = self._new(column.name, pyo.Var)
        if column.integer:
            variable.domain = pyo.Integers
        if math.isfinite(column.lower):
            variable.setlb(column.lower)
        if math.isfinite(column.upper):
            variable.setub(column.upper)
        return variable

    def _constraint_rows(self, rows: Iterable[int]) -> list[tuple[int, ...]]:
        """Rows by the constraint they came from: one, or both sides of a range."""
        groups: list[tuple[int, ...]] = []
        for row in rows:
            if self.data.rows[row].role is Role.LINK:
                continue
            before = groups[-1] if groups else ()
            if len(before) == 1 and _is_range(self.data.rows[before[0]], self.data.rows[row]):
                groups[-1] = (before[0], row)
            else:
                groups.append((row,))
        return groups

    def _constraint(self, rows: tuple[int, ...], within: Any) -> Any:
        row = self.data.rows[rows[-1]]
        upper = self._written(row.bound)
        if row.role is Role.UPPER:
            return self._variable(row.terms[0][0]).setub(upper)
        if row.role is Role.LOWER:
            return self._variable(row.terms[0][0]).setlb(self._written(row.bound.scaled(-1.0)))
        if len(rows) == 2:
            low = self._written(self.data.rows[rows[0]].bound.scaled(-1.0))
            relation = inequality(low, self._body(row), upper)
        elif row.equality:
            relation = self._body(row) == upper
        else:
            relation = self._body(row) <= upper
        return self._new(row.name, pyo.Constraint, within, expr=relation)

    def _body(self, row: Row) -> Any:
        body = linear_expression((self._written(a), self._variable(k)) for k, a in row.terms)
        for curve in row.curves:
            body = body + curve.weight * self._curve(curve)
        return body

    def _curve(self, curve: Curve) -> Any:
        arguments = []
        for i in curve.arguments:
            row = self.data.rows[i]
            arguments.append(self._body(row) - self._written(row.bound))
        if curve.shape in (Shape.SQUARES, Shape.NORM):
            total = pyo.quicksum(t**2 for t in arguments)
            return total if curve.shape is Shape.SQUARES else pyo.sqrt(total)
        (t,) = arguments
        if curve.shape is Shape.EXP:
            return pyo.exp(t)
        if curve.shape is Shape.LOG:
            return -pyo.log(t)
        return -(t**curve.exponent) if 0.0 < curve.exponent < 1.0 else t**curve.exponent

    def _written(self, coefficient: Coefficient) -> Any:
        if coefficient.is_number:
            return coefficient.number
        return pyomo_expression(coefficient.tree(), self.inputs)

    # ---- rules and logic -----------------------------------------------------------------

    def _rule(self, k: int, within: Any) -> None:
        clause = self.rules[k]
        if clause.kind is Kind.CONDITIONAL:
            rows = self.data.booleans[clause.literals[0] - 1].true_rows
            for group in self._constraint_rows(rows):
                constraint = self._constraint(group, within)
                self._conditions.append((constraint, clause.conditions))
                self._numbers(k, constraint)
            return
        disjuncts = [self._disjunct(literal - 1) for literal in clause.disjuncts]
        positions = tuple(range(len(disjuncts)))
        if k in self.of_clause:
            positions = self.of_clause[k].positions[: len(disjuncts)]
        placed = dict(zip(positions, disjuncts, strict=True))
        terms = [placed.get(p) or self._placeholder() for p in range(max(positions) + 1)]
        rule = self._new(clause.name, Disjunction, within, expr=terms)
        rule.xor = clause.xor
        if clause.conditions:
            self._conditions.append((rule, clause.conditions))
        self._numbers(k, rule)
        for literal, disjunct in zip(clause.disjuncts, disjuncts, strict=True):
            boolean = literal - 1
            self._price(disjunct, self.data.booleans[boolean].price)
            nested = self.data.guarded.get(boolean, ())
            self._fill(disjunct, self.data.booleans[boolean].true_rows, nested)

    def _numbers(self, k: int, rule: Any) -> None:
        """Price and importance of a rule."""
        breaking = self.data.clauses[k].breaking
        if breaking >= 0:
            self._prices.append((rule, self.data.booleans[breaking].price))
        if k in self.of_clause and self.of_clause[k].importance != 1.0:
            self._importances.append((rule, self.of_clause[k].importance))

    def _price(self, disjunct: Any, price: Coefficient) -> None:
        if not price.is_zero:
            self._prices.append((disjunct, price))

    def _placeholder(self) -> Any:
        """Stands where a disjunct was deactivated, so that the others keep their positions."""
        name = unique_component_name(self.model, "gdpnet_deactivated")
        disjunct = self._new(name, Disjunct)
        disjunct.deactivate()
        return disjunct

    def _boolean(self, k: int) -> Any:
        if k in self.indicators:
            return self._disjunct(k).indicator_var
        if k not in self.booleans:
            boolean = self.data.booleans[k]
            made_up = boolean.helper or k in self.data.twins
            name = "gdpnet_helper" if made_up else boolean.name
            self.booleans[k] = boolean = self._new(name, pyo.BooleanVar)
            for column, linked in self.linked.items():
                if linked == k:
                    binary = self._variable(column)
                    binary.domain = pyo.Binary
                    boolean.associate_binary_var(binary)
        return self.booleans[k]

    def _logic(self, clause: Clause) -> None:
        parts = [
            self._boolean(abs(n) - 1) if n > 0 else pyo.lnot(self._boolean(abs(n) - 1))
            for n in clause.literals
        ]
        if not parts:  # a proposition that can never hold
            never = self._new("gdpnet_never", pyo.BooleanVar)
            never.fix(False)
            parts = [never]
        constraint = self._new(
            clause.name,
            pyo.LogicalConstraint,
            None if clause.guard < 0 else self._disjunct(clause.guard),
            expr=pyo.lor(*parts),
        )
        if clause.conditions:
            self._conditions.append((constraint, clause.conditions))

    def _suffixes(self) -> None:
        conditions = [
            (component, self._all([self.data.conditions[k] for k in indices]))
            for component, indices in self._conditions
        ]
        prices = [(component, self._written(price)) for component, price in self._prices]
        for name, entries in (
            (ACTIVE_WHEN, conditions),
            (PRICES, prices),
            (IMPORTANCES, self._importances),
        ):
            if entries:
                suffix = pyo.Suffix(direction=pyo.Suffix.LOCAL)
                self.model.add_component(name, suffix)
                for component, value in entries:
                    suffix[component] = value

    def _all(self, conditions: list[Condition]) -> Any:
        if all(c.tree is not None for c in conditions):
            written = [pyomo_expression(c.tree or (), self.inputs) for c in conditions]
            return written[0] if len(written) == 1 else pyo.land(*written)
        if len(conditions) == 1:
            return conditions[0].function
        return _Together(tuple(conditions))


class _Together:
    """Several conditions, some of which are functions, as one function."""

    def __init__(self, conditions: tuple[Condition, ...]) -> None:
        self.conditions = conditions

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        from gdpnet.ir.atoms import Evaluator

        holds = torch.ones(len(x), dtype=torch.bool, device=x.device)
        evaluate = Evaluator(x)
        for condition in self.conditions:
            if condition.tree is not None:
                holds &= evaluate(condition.tree)
            elif condition.function is not None:
                holds &= called_condition(condition.owner, condition.function, x)
        return holds


def _is_inside(block: Any, within: Any) -> bool:
    while block is not None:
        if block is within:
            return True
        block = block.parent_block()
    return False


def _is_range(first: Row, second: Row) -> bool:
    """Whether two rows are the sides of one range."""
    if first.source != second.source or first.equality or second.equality:
        return False
    return {k: a.scaled(-1.0) for k, a in first.terms} == dict(second.terms)
