"""Rules as the hull can read them: truth values and whole numbers written with rows.

A hull knows disjunctions of rows and nothing else. So a truth value that logic names becomes a
variable between 0 and 1, which the disjuncts decide, and a proposition becomes a row on such
variables. A whole number becomes a disjunction over its values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gdpnet.errors import RuleError
from gdpnet.ir.data import Boolean, Clause, Column, Kind, Role, Row, Rule, RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules

MOST_VALUES = 16
"""Values of a whole number that are written out as a disjunction; with more it is refused."""


@dataclass(frozen=True)
class LogicRows:
    """What logic became.

    Attributes:
        truth: column of each boolean that logic names.
        decides: the row that gives the column of a boolean its value, by literal.
        spoken: row of each clause that is part of a proposition.
        same: literal of a nested disjunct that a boolean is the truth of, where its rule is
            required; by boolean.
    """

    truth: dict[int, int]
    decides: dict[int, int]
    spoken: dict[int, int]
    same: dict[int, int]


@dataclass(frozen=True)
class Relaxable:
    """Rules of which a hull can be taken.

    Attributes:
        rules: the rules, with further columns, rows and rules where they are needed.
        logic: where they are.
        given: number of rules that the modeller wrote; the others are whole numbers.
        rows: number of rows that the modeller wrote.
    """

    rules: Rules
    logic: LogicRows
    given: int
    rows: int


NO_LOGIC = LogicRows({}, {}, {}, {})
"""Of rules without logic."""


def relaxable(rules: Rules) -> Relaxable:
    """The rules, ready for a hull; without logic and whole numbers they are so already."""
    return rules.cache[_relaxable]


def _relaxable(rules: Rules) -> Relaxable:
    data = rules.data
    if any(c.logic for c in data.clauses) or any(c.integer for c in data.columns):
        return _RowWriter(data).written()
    return Relaxable(rules, NO_LOGIC, len(rules.names), len(data.rows))


class _RowWriter:
    def __init__(self, data: RuleData) -> None:
        self.data = data
        self.columns = list(data.columns)
        self.rows = list(data.rows)
        self.booleans = list(data.booleans)
        self.clauses = list(data.clauses)
        self.rules = list(data.rules)

    def written(self) -> Relaxable:
        logic = self._logic()
        self._whole_numbers(logic)
        data = replace(
            self.data,
            columns=tuple(self.columns),
            rows=tuple(self.rows),
            booleans=tuple(self.booleans),
            clauses=tuple(self.clauses),
            rules=tuple(self.rules),
        )
        rules = Rules.from_data(data)
        return Relaxable(rules, logic, len(self.data.rules), len(self.data.rows))

    # ---- logic ---------------------------------------------------------------------------

    def _logic(self) -> LogicRows:
        data = self.data
        spoken = [k for k, c in enumerate(data.clauses) if c.kind is Kind.PROPOSITION]
        named = sorted(
            {abs(literal) - 1 for k in spoken for literal in data.clauses[k].literals}
            | {data.clauses[k].guard for k in spoken if data.clauses[k].guard >= 0}
        )
        truth: dict[int, int] = {}
        decides: dict[int, int] = {}
        for k, boolean in enumerate(data.booleans):
            if k not in named and not boolean.false_rows:
                continue
            linked = [(i, data.rows[i].terms[0][0]) for i in boolean.false_rows]
            if linked:
                decides[-(k + 1)], truth[k] = linked[0]
                decides[k + 1] = next(
                    i for i in boolean.true_rows if data.rows[i].role is Role.LINK
                )
                continue
            truth[k] = len(self.columns)
            name = f"{boolean.name}.binary_indicator_var"  # as Pyomo calls it
            if k not in data.disjuncts and k not in data.twins:
                name = f"truth of {boolean.name}"
            self.columns.append(Column(name, 0.0, 1.0))
            for literal, value in ((k + 1, 1.0), (-(k + 1), 0.0)):
                decides[literal] = self._row(boolean.name, {truth[k]: 1.0}, value, equality=True)
        rows = {}
        for k in spoken:
            clause = data.clauses[k]
            literals = clause.literals
            if clause.guard >= 0:
                literals = (-(clause.guard + 1), *literals)
            terms = {truth[abs(n) - 1]: -1.0 if n > 0 else 1.0 for n in literals}
            rows[k] = self._row(clause.name, terms, sum(n < 0 for n in literals) - 1.0)
        same = {twin: nested + 1 for twin, nested in data.twins.items() if twin in truth}
        return LogicRows(truth, decides, rows, same)

    def _row(self, name: str, terms: dict[int, float], bound: float, equality: bool = False) -> int:
        written = tuple((j, Coefficient(a)) for j, a in terms.items())
        self.rows.append(Row(name, written, Coefficient(bound), equality))
        return len(self.rows) - 1

    # ---- whole numbers -------------------------------------------------------------------

    def _whole_numbers(self, logic: LogicRows) -> None:
        """A rule for every whole number that no rule of the modeller decides."""
        linked = {column: k for k, column in logic.truth.items()}
        refused = []
        for j, column in enumerate(self.data.columns):
            if not column.integer:
                continue
            boolean = linked.get(j, -1)
            if boolean in self.data.disjuncts or boolean in logic.same:
                continue
            if boolean >= 0:
                self._rule(column.name, (boolean + 1, -(boolean + 1)))
                continue
            if not column.upper - column.lower < MOST_VALUES:
                refused.append(f"{column.name} ({column.lower:g} to {column.upper:g})")
                continue
            literals = []
            first, last = math.ceil(column.lower), math.floor(column.upper)
            for value in range(first, last + 1):
                name = f"{column.name} == {value}"
                self.booleans.append(
                    Boolean(name, (self._row(name, {j: 1.0}, float(value), equality=True),))
                )
                literals.append(len(self.booleans))
            self._rule(column.name, tuple(literals))
        if refused:
            raise RuleError(
                f"The hull writes whole numbers out up to {MOST_VALUES} values; more have "
                f"{', '.join(refused[:8])}. Narrow the bounds, or use relaxation='dnf' with "
                "solver='exact', which needs none."
            )

    def _rule(self, name: str, literals: tuple[int, ...]) -> None:
        self.clauses.append(Clause(name, literals, xor=True))
        rule = Rule(name, len(self.clauses) - 1, tuple(range(len(literals))))
        self.rules.append(rule)
