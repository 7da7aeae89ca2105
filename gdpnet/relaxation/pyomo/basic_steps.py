"""`gdpnet.basic_steps`: rules and constraints merged into one Disjunction of their products."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyomo.environ as pyo
from pyomo.common.config import ConfigDict, ConfigValue, In, PositiveInt, document_class_CONFIG
from pyomo.core.base.transformation import Transformation
from pyomo.core.util import target_list
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.disjunct import DisjunctionData

from gdpnet.errors import ConflictError, RuleError
from gdpnet.relaxation.pyomo import prices, walk
from gdpnet.relaxation.pyomo.alternatives import Alternative, alternatives, products
from gdpnet.relaxation.pyomo.feasibility import ConstraintCheck
from gdpnet.relaxation.pyomo.propositions import Propositions
from gdpnet.relaxation.pyomo.provenance import (
    get_products,
    get_src_constraint,
    get_src_disjuncts,
    note_copy,
    of,
)
from gdpnet.relaxation.pyomo.ranges import param_ranges
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader

logger = logging.getLogger("gdpnet")

_KINDS = (Disjunction, pyo.Constraint)


@dataclass
class _Cluster:
    """What is merged into one Disjunction."""

    disjunctions: list[DisjunctionData] = field(default_factory=list)
    constraints: list[Any] = field(default_factory=list)

    def add(self, members: Iterable[Any]) -> None:
        for member in members:
            rules = self.disjunctions if member.ctype is Disjunction else self.constraints
            rules.append(member)


@document_class_CONFIG()
class BasicSteps(Transformation):
    """Merge Disjunctions and Constraints into one Disjunction of products (Balas' basic steps).

    Each cluster of rules becomes one Disjunction whose disjuncts are the products: one disjunct of
    every rule, all of whose rows hold. What is nested in a rule is multiplied out too, so a cluster
    of one rule flattens it. Rules in no cluster stay as they are.

    A Constraint in a cluster (an improper disjunction, of one disjunct) holds in every product of
    it, and is deactivated outside. It may stand in several clusters.

    A hull is the convex hull of what stands in its disjuncts, and no more. So merging all rules is
    exact for an objective only if the constraints that tie it to the rules are merged too, and
    for the projection only after `gdpnet.lift_projection`, which writes distance and constraints
    into the disjuncts.

    - Products in which no point is left are left out (`prune`): at the present values of the
      Params, or for all values within `input_bounds`.
    - Products that contradict the LogicalConstraints are left out. Logic within one cluster is
      said by that and deactivated; logic that ties several clusters becomes rows on the binaries of
      the source indicators, which every product decides (`logic="rows"`), or is dropped
      (`"drop"`). In a hull both are a relaxation, the rows the tighter one.
    - The xor flag does not matter unless logic names the indicators: at least one disjunct holds.
    - The indicators of the sources have values after solving: each binary is linked to the sum of
      those of its products. `links=False` leaves these rows out, one for each source disjunct,
      where a linear program does not need them.
    - Prices (the Suffix `rule_price`) add up: a product costs the sum of its sources, and a rule
      that may be broken at a price has one more disjunct, without rows, that costs it.
    - The products refer to the Vars, Params and Expressions of the model, nothing is cloned. The
      sources are deactivated, not deleted, and rows of products are named after their sources.

    `pyomo.gdp.basic_step.apply_basic_step` gives the same hull; it has no pruning, no logic, no
    nesting and no way back to the sources.

    The merged Disjunction is `_gdpnet_basic_steps[k].merged`, its disjuncts
    `_gdpnet_basic_steps[k].product[i, j, ...]`, numbered by the positions of the source disjuncts.

    Example:
        >>> import pyomo.environ as pyo
        >>> from pyomo.gdp import Disjunction
        >>> import gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.first = Disjunction(expr=[[m.y <= 3], [m.y >= 6]])
        >>> m.second = Disjunction(expr=[[m.y <= 4], [m.y >= 7]])
        >>> steps = pyo.TransformationFactory("gdpnet.basic_steps")
        >>> steps.apply_to(m, clusters=[[m.first, "second"]])

        Two of the four products are empty:

        >>> for product in steps.get_products(m.first.disjuncts[0]):
        ...     print(product.name, "from", *steps.get_src_disjuncts(product))
        _gdpnet_basic_steps[0].product[0,0] from first_disjuncts[0] second_disjuncts[0]
        >>> m._gdpnet_basic_steps[0].product[1, 1].rows.pprint()
        rows : Size=2, Index=Any, Active=True
            Key                               : Lower : Body : Upper : Active
             first_disjuncts[1].constraint[1] :   6.0 :    y :  +Inf :   True
            second_disjuncts[1].constraint[1] :   7.0 :    y :  +Inf :   True
    """

    CONFIG = ConfigDict("gdpnet.basic_steps")
    CONFIG.declare(
        "targets",
        ConfigValue(
            default=None,
            domain=target_list,
            description="Disjunctions, Constraints or Blocks to work on; default: the instance",
        ),
    )
    CONFIG.declare(
        "clusters",
        ConfigValue(
            default=None,
            description="lists of Disjunctions and Constraints; each list is merged",
            doc="""
            Lists of Disjunctions and Constraints, of members of indexed ones, or of their names;
            each list is merged into one Disjunction. Default: the Disjunctions of all targets, and
            the Constraints that targets name, in one.""",
        ),
    )
    CONFIG.declare(
        "prune",
        ConfigValue(default=True, domain=bool, description="leave products out that are empty"),
    )
    CONFIG.declare(
        "input_bounds",
        ConfigValue(
            default=None,
            description="ranges of Params: prune what is empty for every value within them",
            doc="""
            Mapping of mutable Params, or their names, to pairs (low, high). A product is then left
            out only if it is empty for all values in these ranges; Params that are not named keep
            the value they have. Default: all Params at their present values.""",
        ),
    )
    CONFIG.declare(
        "logic",
        ConfigValue(
            default="rows",
            domain=In(["rows", "drop"]),
            description="what becomes of logic that ties several clusters: rows, or nothing",
        ),
    )
    CONFIG.declare(
        "links",
        ConfigValue(
            default=True,
            domain=bool,
            description="rows that give the indicators of the sources their values",
        ),
    )
    CONFIG.declare(
        "max_products",
        ConfigValue(
            default=100_000,
            domain=PositiveInt,
            description="number of products of a cluster at which to stop with an error",
        ),
    )

    def _apply_to(self, instance: Any, **kwds: Any) -> None:
        config = self.CONFIG(kwds.pop("options", {}))
        config.set_value(kwds)
        clusters = _clusters(config.clusters, config.targets, instance)
        if not clusters:
            return
        prices.note(instance.model(), [d for cluster in clusters for d in cluster.disjunctions])
        ranges = param_ranges(config.input_bounds, instance)
        logic = Propositions(instance.model())
        reader = SymbolicReader()
        feasibility = ConstraintCheck(reader, ranges) if config.prune else None
        if feasibility is not None and not feasibility.push(walk.constraints(instance)):
            feasibility = None  # nothing at all is feasible, which is not the products' fault
        merged = [self._products(c, logic, feasibility, config.max_products) for c in clusters]

        exact, across = logic.settle([cluster.disjunctions for cluster in clusters])
        blocks = _new_blocks(instance, "_gdpnet_basic_steps")
        needed = set(logic.binaries)
        if across and config.logic == "rows":
            logic_blocks = _new_blocks(instance, "_gdpnet_logic")
            needed |= logic.write_rows(logic_blocks[len(logic_blocks)], across)
            logger.info(
                "Logic that ties several Disjunctions is kept as rows: %s. In a hull they are a "
                "relaxation.", ", ".join(c.name for c in across))  # fmt: skip
        elif across:
            logger.info("Logic that ties several Disjunctions is dropped: %s.",
                        ", ".join(c.name for c in across))  # fmt: skip
        for cluster, found in zip(clusters, merged, strict=True):
            block = blocks[len(blocks)]
            self._write(block, cluster, found, needed)
            if config.links:
                _link(block, cluster, needed)
        for constraint in [*exact, *across, *(c for k in clusters for c in k.constraints)]:
            constraint.deactivate()
        for cluster in clusters:
            walk.switch_off(cluster.disjunctions)

    def _products(
        self, cluster: _Cluster, logic: Propositions, feasibility: ConstraintCheck | None, most: int
    ) -> list[tuple[Alternative, ...]]:
        names = [disjunction.name for disjunction in cluster.disjunctions]
        rules = [alternatives(disjunction, logic.named) for disjunction in cluster.disjunctions]

        def push(option: Alternative) -> bool:
            assert feasibility is not None
            return feasibility.push(option.constraints)

        def pop() -> None:
            assert feasibility is not None
            feasibility.pop()

        found = products(
            rules, logic.consistent, None if feasibility is None else push, pop, most, names
        )
        if not found:
            what = "contradict each other" if len(names) > 1 else "can never hold"
            raise ConflictError(
                f"{', '.join(names)} {what}: with the global constraints and the logic, every "
                "combination of disjuncts is empty"
                + ("." if feasibility is None else " at the present values of the Params.")
            )
        return found

    def _write(
        self,
        block: Any,
        cluster: _Cluster,
        found: list[tuple[Alternative, ...]],
        needed: set[int],
    ) -> None:
        block.product = Disjunct(pyo.Any)
        made = []
        for chosen in found:
            labels = tuple(option.label for option in chosen)
            product = block.product[labels if len(labels) > 1 else labels[0]]
            product.rows = pyo.Constraint(pyo.Any)
            rows = [source for option in chosen for source in option.constraints]
            for source in [*rows, *cluster.constraints]:
                product.rows[source.name] = source.expr
                note_copy(product.rows[source.name], source)
            self._decide(product, cluster, chosen, needed)
            sources = tuple(d for option in chosen for d in option.disjuncts)
            of(product).sources = sources
            of(product).price = prices.total(sources)
            for source in sources:
                of(source).products.append(product)
            made.append(product)
        block.merged = Disjunction(expr=made)

    @staticmethod
    def _decide(
        product: Any, cluster: _Cluster, chosen: Iterable[Alternative], needed: set[int]
    ) -> None:
        """Rows that give the binaries of source indicators their value, where one is needed."""
        truth = {key: value for option in chosen for key, value in option.truth.items()}
        for disjunction in walk.tree(cluster.disjunctions):
            for disjunct in disjunction.disjuncts:
                binary = disjunct.binary_indicator_var
                value = truth.get(id(disjunct.indicator_var))
                if value is not None and id(binary) in needed:
                    product.rows[binary.name] = binary == int(value)

    @staticmethod
    def get_src_disjuncts(product: Any) -> tuple[Any, ...]:
        """The source disjuncts that hold in a product."""
        return get_src_disjuncts(product)

    @staticmethod
    def get_products(source: Any) -> tuple[Any, ...]:
        """The products in which a source disjunct holds."""
        return get_products(source)

    @staticmethod
    def get_src_constraint(row: Any) -> Any:
        """The constraint that a row of a product was copied from."""
        return get_src_constraint(row)


def _link(block: Any, cluster: _Cluster, decided: set[int]) -> None:
    """Rows by which the binary of a source is 1 in its products and 0 in others.

    Args:
        block: holds the products.
        cluster: the sources.
        decided: ids of the binaries that rows of the products give their values already.
    """
    made: dict[int, list[Any]] = {}
    for product in block.product.values():
        for source in of(product).sources:
            made.setdefault(id(source), []).append(product.binary_indicator_var)
    linked = {}
    block.add_component(walk.LINKS, pyo.Constraint(pyo.Any))
    rows = block.component(walk.LINKS)
    for disjunction in walk.tree(cluster.disjunctions):
        for source in disjunction.disjuncts:
            binary = source.binary_indicator_var
            if source.indicator_var.fixed:
                continue
            linked[source.name] = binary
            if id(binary) not in decided:
                rows[source.name] = binary == pyo.quicksum(made.get(id(source), []))
    # The sources are deactivated: without it, core.relax_integer_vars would not find the binaries.
    block.linked = pyo.Reference(linked, ctype=pyo.Var)


def _clusters(given: Any, targets: Any, instance: Any) -> list[_Cluster]:
    named, allowed = _within(targets, instance)
    if given is None:
        return [named] if named.disjunctions else []
    if isinstance(given, str) or hasattr(given, "ctype") or not isinstance(given, Iterable):
        raise RuleError(_NO_LISTS.format(walk.described(given)))
    clusters: list[_Cluster] = []
    where: dict[int, int] = {}
    for k, items in enumerate(given):
        if isinstance(items, str) or hasattr(items, "ctype") or not isinstance(items, Iterable):
            raise RuleError(_NO_LISTS.format(walk.described(items)))
        members = [c for item in items for c in walk.resolve(item, instance, "clusters", _KINDS)]
        if not members:
            raise RuleError(f"clusters: cluster {k} is empty. Leave it out.")
        for member in members:
            what = f"clusters: {member.ctype.__name__} '{member.name}'"
            if where.get(id(member)) == k:
                raise RuleError(f"{what} stands twice in one cluster. Name it once.")
            if id(member) in where and member.ctype is Disjunction:
                raise RuleError(
                    f"{what} stands in two clusters. A rule can be merged once; put all rules it "
                    "is to be merged with into one cluster."
                )
            where[id(member)] = k
            if id(member) not in allowed:
                raise RuleError(f"{what} is not among the targets.")
        cluster = _Cluster()
        cluster.add(members)
        if not cluster.disjunctions:
            raise RuleError(
                f"clusters: cluster {k} has Constraints only. Name a Disjunction whose disjuncts "
                "they are to hold in."
            )
        clusters.append(cluster)
    return clusters


def _within(targets: Any, instance: Any) -> tuple[_Cluster, set[int]]:
    """What targets stand for, and the ids of all that a cluster may name."""
    found: dict[int, Any] = {}
    inside: set[int] = set()
    for target in [instance] if targets is None else targets:
        if walk.is_block(target):
            blocks = walk.active_blocks(target)
            members = [d for block in blocks for d in walk.top_level(block)]
            inside.update(id(c) for block in blocks for c in walk.constraints(block))
        else:
            members = walk.resolve(target, instance, "targets", _KINDS)
        found.update((id(member), member) for member in members)
    named = _Cluster()
    named.add(found.values())
    return named, inside | set(found)


_NO_LISTS = (
    "clusters: expected lists of Disjunctions and Constraints, got {} by itself. Write [[...]] for "
    "one cluster."
)


def _new_blocks(instance: Any, name: str) -> Any:
    """The indexed Block of a name, made where it does not exist yet."""
    if instance.component(name) is None:
        instance.add_component(name, pyo.Block(pyo.NonNegativeIntegers))
    return instance.component(name)
