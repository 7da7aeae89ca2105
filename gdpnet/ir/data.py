"""What a rule model consists of once it has been read: plain, immutable, without Pyomo.

    z = (outputs, auxiliaries)            columns
    a(x) z <= b(x)  or  a(x) z == b(x)    rows
    a(x) z + curves(z; x) <= b(x)         rows that are convex, and not linear
    Boolean                               an indicator: its rows hold when it is true
    Clause                                at least one of its literals is true
    Rule                                  a clause that is a column of the masks

A Disjunction is a clause whose literals are the indicators of its disjuncts. A nested one is a
clause guarded by its parent's indicator: required only where the parent is chosen. Logic over
indicators arrives as further clauses, with negative literals.

Literals are numbered as in SAT solvers: `+(k + 1)` says that boolean k is true, `-(k + 1)` that it
is false.

A boolean may have a price: choosing it costs so much beside the distance. A rule that may be broken
at a price has one more literal, a boolean without rows that costs it (`Clause.breaking`).

What a row or a clause is for is said by `Row.role` and `Clause.kind`, and what belongs together by
`source`: names are for people, and nothing is concluded from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import torch

from gdpnet.ir.atoms import Tree
from gdpnet.ir.linear import Coefficient


class Role(StrEnum):
    """What a row is for."""

    CONSTRAINT = "constraint"
    """Part of a Constraint."""
    LOWER = "lower"
    """A lower bound of a Var that depends on the inputs: `-1 * column <= -bound(x)`."""
    UPPER = "upper"
    """An upper bound of a Var that depends on the inputs: `1 * column <= bound(x)`."""
    LINK = "link"
    """Gives the binary Var of a boolean its value: `column == 1`, or `column == 0`."""
    ARGUMENT = "argument"
    """No constraint: `a(x) z - b(x)` is the argument of a curve. Nothing enforces it."""


class Shape(StrEnum):
    """A convex function of one argument t, or of several."""

    SQUARES = "squares"
    """The sum of t_i^2."""
    NORM = "norm"
    """The root of the sum of t_i^2."""
    EXP = "exp"
    """exp(t)."""
    LOG = "log"
    """-log(t), for t > 0."""
    POWER = "power"
    """t^p: for p >= 1 and t >= 0 (for even whole p any t), for p < 0 and t > 0; -t^p for
    0 < p < 1 and t >= 0."""


class Kind(StrEnum):
    """What a clause says."""

    DISJUNCTION = "disjunction"
    """One of the disjuncts holds."""
    CONDITIONAL = "conditional"
    """A Constraint with a condition: its one literal has the rows."""
    PROPOSITION = "proposition"
    """Part of a LogicalConstraint, or a BooleanVar that is fixed."""
    XOR = "xor"
    """Two disjuncts of a Disjunction are not true together; written where logic names them."""
    FIXED = "fixed"
    """The indicator of a disjunct is fixed to true."""
    TWIN = "twin"
    """Where its rule is required, a nested disjunct (second literal) has the truth value by which
    logic names it (first literal)."""


@dataclass(frozen=True)
class Column:
    """One variable of z.

    Attributes:
        name: name of the Pyomo Var.
        lower: lower bound, -inf where there is none.
        upper: upper bound, inf where there is none.
        integer: whether only whole numbers are allowed.
    """

    name: str
    lower: float
    upper: float
    integer: bool = False


@dataclass(frozen=True)
class Curve:
    """`weight * shape(arguments)`, convex in z for every x.

    What depends on the inputs stands in the arguments: `w(x) t^2` is the square of `sqrt(w(x)) t`.

    Attributes:
        shape: which function.
        weight: its factor, a positive number.
        arguments: rows (`Role.ARGUMENT`) whose `a(x) z - b(x)` are its arguments.
        exponent: of `POWER`.
    """

    shape: Shape
    weight: float
    arguments: tuple[int, ...]
    exponent: float = 2.0


@dataclass(frozen=True)
class Row:
    """`sum(coefficient * column) <= bound`, or `==`.

    Attributes:
        name: the constraint it came from (both rows of a range have the same name).
        terms: column and coefficient of each non-zero.
        bound: right side.
        equality: `==` instead of `<=`.
        role: what it is for.
        source: the same number for all rows of one Constraint, -1 for a row of none.
        curves: convex functions that stand beside the terms on the left; never in an equality.
    """

    name: str
    terms: tuple[tuple[int, Coefficient], ...]
    bound: Coefficient
    equality: bool = False
    role: Role = Role.CONSTRAINT
    source: int = -1
    curves: tuple[Curve, ...] = ()

    @property
    def is_bound(self) -> bool:
        """Whether it is the bound of a variable that depends on inputs."""
        return self.role in (Role.LOWER, Role.UPPER)


@dataclass(frozen=True)
class Boolean:
    """An indicator, a BooleanVar, or a helper of a proposition.

    Attributes:
        name: where it came from.
        true_rows: rows that hold when it is true.
        false_rows: rows that hold when it is false (binary Vars linked to it).
        tied: its truth value matters by itself, because it stands in logic. An untied boolean is
            a plain disjunct: true means that its rows hold, false means nothing.
        helper: made up to write a proposition as clauses.
        price: what choosing it costs, in units of what is minimised; only of a disjunct, and of
            what breaks a rule. It is paid where the clause of the disjunct is required.
    """

    name: str
    true_rows: tuple[int, ...] = ()
    false_rows: tuple[int, ...] = ()
    tied: bool = False
    helper: bool = False
    price: Coefficient = field(default_factory=Coefficient)


@dataclass(frozen=True)
class Clause:
    """At least one literal is true, where all conditions hold and the guard is chosen.

    Attributes:
        name: the Disjunction or LogicalConstraint it came from.
        literals: see the module's docstring.
        guard: boolean under which it is required, -1 for always.
        conditions: indices into `RuleData.conditions`; all must hold.
        kind: what it says.
        xor: of a Disjunction, whether exactly one disjunct is true.
        source: the same number for all clauses of one LogicalConstraint, and for a Disjunction and
            what is said about its indicators alone (`XOR`, `FIXED`, `TWIN`); -1 for a clause of
            none.
        breaking: of a rule that may be broken at a price, the boolean of its last literal: it has
            no rows, and where it is chosen the rule is broken. -1 for a hard one.
    """

    name: str
    literals: tuple[int, ...]
    guard: int = -1
    conditions: tuple[int, ...] = ()
    kind: Kind = Kind.DISJUNCTION
    xor: bool = False
    source: int = -1
    breaking: int = -1

    @property
    def logic(self) -> bool:
        """Whether it is about truth values, and no rule."""
        return self.kind not in (Kind.DISJUNCTION, Kind.CONDITIONAL)

    @property
    def disjuncts(self) -> tuple[int, ...]:
        """Literals of a rule without the one that breaks it."""
        return self.literals if self.breaking < 0 else self.literals[:-1]

    @property
    def unbroken(self) -> Clause:
        """The same rule without a price: it has to hold."""
        return replace(self, literals=self.disjuncts, breaking=-1)


@dataclass(frozen=True)
class Rule:
    """A column of the masks: a top-level Disjunction, or a Constraint with a condition.

    Attributes:
        name: name of the component.
        clause: its clause.
        positions: index in the source Disjunction of each literal of the clause (deactivated
            disjuncts have no literal); -1 for the literal that breaks it.
        importance: where hard rules contradict each other, what leaving it out counts.
    """

    name: str
    clause: int
    positions: tuple[int, ...]
    importance: float = 1.0


@dataclass(frozen=True)
class Condition:
    """When something applies.

    Attributes:
        owner: component it was given for.
        tree: condition over the inputs, or None for a function.
        function: `x (batch x p) -> bool (batch)`.
    """

    owner: str
    tree: Tree | None = None
    function: Callable[[torch.Tensor], torch.Tensor] | None = None


@dataclass(frozen=True)
class RuleData:
    """All of a rule model.

    Attributes:
        inputs: names of the columns of x.
        input_bounds: range of each input, (-inf, inf) where unknown.
        outputs: number of outputs; they are the first columns.
        columns: outputs, then auxiliaries.
        rows: all rows.
        global_rows: rows that always hold.
        booleans: all booleans.
        clauses: all clauses; a nested one stands behind the clause that holds its guard.
        rules: columns of the masks.
        conditions: conditions that clauses refer to.
    """

    inputs: tuple[str, ...]
    input_bounds: tuple[tuple[float, float], ...]
    outputs: int
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    global_rows: tuple[int, ...]
    booleans: tuple[Boolean, ...]
    clauses: tuple[Clause, ...]
    rules: tuple[Rule, ...]
    conditions: tuple[Condition, ...]

    @cached_property
    def curved(self) -> tuple[int, ...]:
        """Rows that are not linear."""
        return tuple(i for i, row in enumerate(self.rows) if row.curves)

    @cached_property
    def arguments(self) -> frozenset[int]:
        """Rows that are arguments of curves, and no constraints."""
        return frozenset(i for i, row in enumerate(self.rows) if row.role is Role.ARGUMENT)

    def columns_in(self, row: int) -> list[int]:
        """Columns of a row and of the arguments of its curves, each once, in their order."""
        found = [column for column, _ in self.rows[row].terms]
        if self.rows[row].curves:
            within = (i for curve in self.rows[row].curves for i in curve.arguments)
            found = sorted({*found, *(j for i in within for j, _ in self.rows[i].terms)})
        return found

    @cached_property
    def guarded(self) -> dict[int, list[int]]:
        """Disjunctions nested in each disjunct, by its boolean."""
        below: dict[int, list[int]] = {}
        for index, clause in enumerate(self.clauses):
            if clause.guard >= 0 and not clause.logic:
                below.setdefault(clause.guard, []).append(index)
        return below

    @cached_property
    def twins(self) -> dict[int, int]:
        """Nested disjunct that each twin stands for in logic, booleans both."""
        twins = [c.literals for c in self.clauses if c.kind is Kind.TWIN]
        return {abs(twin) - 1: abs(nested) - 1 for twin, nested in twins}

    @cached_property
    def priced(self) -> tuple[int, ...]:
        """Booleans with a price, in their order."""
        return tuple(k for k, boolean in enumerate(self.booleans) if not boolean.price.is_zero)

    @cached_property
    def prices_disjuncts(self) -> bool:
        """Whether a disjunct has a price, and not rules alone."""
        return not {c.breaking for c in self.clauses}.issuperset(self.priced)

    def price_of(self, boolean: int) -> str:
        """Whose price the price of a boolean is, for messages."""
        for clause in self.clauses:
            if clause.breaking == boolean:
                return f"the price of breaking '{clause.name}'"
        return f"the price of '{self.booleans[boolean].name}'"

    @cached_property
    def hard(self) -> tuple[bool, ...]:
        """Of each rule, whether it has to hold: none buys it off."""
        return tuple(self.clauses[rule.clause].breaking < 0 for rule in self.rules)

    @cached_property
    def owner(self) -> dict[int, int]:
        """The clause whose disjunct each boolean is, nested ones included, or which it breaks."""
        own = (
            (abs(n) - 1, k) for k, c in enumerate(self.clauses) if not c.logic for n in c.literals
        )
        return dict(own)

    def required_by(self, boolean: int) -> Iterator[int]:
        """The clause of a disjunct, that of the disjunct in which it stands, and so on."""
        while boolean in self.owner:
            clause = self.owner[boolean]
            yield clause
            boolean = self.clauses[clause].guard

    @cached_property
    def disjuncts(self) -> frozenset[int]:
        """Booleans that are disjuncts of a rule, nested ones included."""
        return frozenset(abs(n) - 1 for c in self.clauses if not c.logic for n in c.literals)

    def subtree(self, clause: int) -> Iterator[int]:
        """A Disjunction and all that are nested in its disjuncts."""
        yield clause
        for literal in self.clauses[clause].literals:
            for nested in self.guarded.get(literal - 1, ()):
                yield from self.subtree(nested)

    def rows_below(self, clause: int) -> set[int]:
        """Rows of a clause's literals, nested ones included."""
        return {
            row
            for index in self.subtree(clause)
            for literal in self.clauses[index].literals
            for row in self.booleans[literal - 1].true_rows
        }
