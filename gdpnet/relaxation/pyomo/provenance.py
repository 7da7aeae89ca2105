"""Where the parts of a transformed model came from.

The maps are kept on the blocks they belong to (`private_data`), so that they follow a clone.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.common.autoslots import AutoSlots
from pyomo.common.collections import ComponentMap

from gdpnet.errors import RuleError


class Provenance(AutoSlots.Mixin):
    """What one block or disjunct was made from, or into.

    Attributes:
        sources: of a product: the disjuncts that hold in it.
        products: of a source disjunct: the products made with it.
        rows: source of each constraint that was written here.
        copies: of a block whose constraints were copied elsewhere: the copies of each.
        cones: kind, members and exponent of constraints written here that are cones.
        heads: source of each Var written here that bounds a convex function.
        price: of a disjunct, what choosing it costs; None where nobody has looked yet.
        breaks: of a disjunct, whether choosing it breaks its rule.
    """

    __slots__ = ("breaks", "cones", "copies", "heads", "price", "products", "rows", "sources")

    def __init__(self) -> None:
        self.sources: tuple[Any, ...] = ()
        self.products: list[Any] = []
        self.rows = ComponentMap()
        self.copies = ComponentMap()
        self.cones = ComponentMap()
        self.heads = ComponentMap()
        self.price: Any = None
        self.breaks = False


pyo.Block.register_private_data_initializer(Provenance, scope="gdpnet")


def of(block: Any) -> Provenance:
    """The maps of a block or disjunct."""
    return block.private_data("gdpnet")


def note_copy(row: Any, source: Any) -> None:
    """Remember that a constraint was copied from another, both ways."""
    of(row.parent_block()).rows[row] = source
    of(source.parent_block()).copies.setdefault(source, []).append(row)


def note_cone(row: Any, kind: Any, members: tuple[Any, ...], exponent: float) -> None:
    """Remember which cone a constraint is, and the expressions that are its members."""
    of(row.parent_block()).cones[row] = (kind, members, exponent)


def note_head(head: Any, source: Any) -> None:
    """Remember the constraint of a Var that bounds a convex function."""
    of(head.parent_block()).heads[head] = source


def get_src_disjuncts(product: Any) -> tuple[Any, ...]:
    """The source disjuncts that hold in a product of `gdpnet.basic_steps`.

    One of each merged rule, in the order of the rules; a nested disjunct stands behind its parent.

    Args:
        product: a Disjunct that the transformation made.
    """
    sources = of(product).sources
    if not sources:
        raise RuleError(f"'{product.name}' is no product of gdpnet.basic_steps.")
    return sources


def get_products(source: Any) -> tuple[Any, ...]:
    """The products of `gdpnet.basic_steps` in which a source disjunct holds.

    Args:
        source: a Disjunct of a merged rule. Empty where all of its products were deleted.
    """
    return tuple(of(source).products)


def get_src_constraint(row: Any) -> Any:
    """The modeller's constraint that a row of a disjunct was copied from.

    Follows copies of copies, so a globally valid row lifted into a product leads to the model's
    own constraint.

    Args:
        row: a constraint written by `gdpnet.basic_steps` or `gdpnet.lift_projection`.
    """
    found = of(row.parent_block()).rows.get(row)
    if found is None:
        raise RuleError(f"'{row.name}' was not copied by gdpnet from another constraint.")
    while (above := of(found.parent_block()).rows.get(found)) is not None:
        found = above
    return found


def get_copies(source: Any) -> tuple[Any, ...]:
    """The rows that `gdpnet.basic_steps` or `gdpnet.lift_projection` copied from a constraint.

    Args:
        source: a constraint of the model, or of a source disjunct.
    """
    return tuple(of(source.parent_block()).copies.get(source, ()))
