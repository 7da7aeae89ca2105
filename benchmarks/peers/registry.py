"""Who is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A peer in one configuration.

    Attributes:
        title: as in the tables.
        adapter: module and class.
        package: what has to be installed.
        program: what it solves: "exact" (no program written down), "LP", "QP" or "MILP".
        only: prefixes of the cases that it is measured on; empty for all.
        families: of the cases that it can be asked about.
    """

    title: str
    adapter: str
    package: str
    program: str
    only: tuple[str, ...] = ()
    families: tuple[str, ...] = ("l1",)

    @property
    def module(self) -> str:
        """The module of `adapters`, which has a process of its own."""
        return self.adapter.split(".")[0]

    @property
    def peer(self) -> str:
        """The class in it."""
        return self.adapter.split(".")[1]


FEW = ("cooling", "stress")  # programs with their empty products, for comparison
SMALL = ("cooling", "pbmc")
L2 = ("l2",)
ALL = ("l1", "l2", "tables")

ENTRIES = {
    entry.title: entry
    for entry in (
        Entry("gdpnet, vertex", "ours.Vertex", "gdpnet", "exact", families=ALL),
        Entry("gdpnet, QP gradient", "ours.Quadratic", "gdpnet", "exact"),
        Entry("gdpnet, QP point", "ours.QuadraticPoint", "gdpnet", "QP"),
        Entry("gdpnet, CNF", "ours.Conjunctive", "gdpnet", "CNF"),
        Entry("HiGHS in place, CNF", "highs.ConjunctiveInPlace", "highspy", "CNF"),
        Entry("HiGHS in place", "highs.InPlace", "highspy", "LP"),
        Entry("HiGHS in place, all products", "highs.Full", "highspy", "LP", FEW),
        Entry("HiGHS cold", "highs.Cold", "highspy", "LP"),
        Entry("Gurobi in place", "gurobi.InPlace", "gurobipy", "LP"),
        Entry("Gurobi MILP", "gurobi.MixedInteger", "gurobipy", "MILP"),
        Entry("scipy.milp", "milp.Scipy", "scipy", "MILP"),
        Entry("Clarabel", "interior.Clarabel", "clarabel", "LP"),
        Entry("PIQP", "interior.PIQP", "piqp", "LP"),
        Entry("cvxpylayers diffcp/Clarabel", "cvxpylayers.ClarabelLP", "cvxpylayers", "LP"),
        Entry(
            "cvxpylayers diffcp/Clarabel, all products",
            "cvxpylayers.FullClarabelLP",
            "cvxpylayers",
            "LP",
            FEW,
        ),
        Entry("cvxpylayers diffcp/SCS", "cvxpylayers.ScsLP", "cvxpylayers", "LP"),
        Entry("cvxpylayers diffcp/Clarabel QP", "cvxpylayers.ClarabelQP", "cvxpylayers", "QP"),
        Entry("cvxpylayers MOREAU", "cvxpylayers.MoreauLP", "moreau", "LP"),
        Entry("cvxpylayers MOREAU, all products", "cvxpylayers.FullMoreauLP", "moreau", "LP", FEW),
        Entry("cvxpylayers MOREAU QP", "cvxpylayers.MoreauQP", "moreau", "QP"),
        Entry("OSQP layer", "layers.OSQP", "osqp", "QP"),
        Entry("OSQP layer, tuned", "layers.TunedOSQP", "osqp", "QP", SMALL),
        Entry("qpth", "layers.Qpth", "qpth", "QP"),
        Entry("qpth, tuned", "layers.TunedQpth", "qpth", "QP", SMALL),
        Entry("proxsuite QPLayer", "layers.QPLayer", "proxsuite", "QP"),
        Entry("proxsuite QPLayer, tuned", "layers.TunedQPLayer", "proxsuite", "QP", SMALL),
        Entry("PiShield", "pishield.Shield", "pishield", "conjunction"),
        Entry("discopt", "discopt.Model", "discopt", "MILP", SMALL),
        Entry("DAQP", "separate.DAQP", "daqp", "QPs", families=L2),
        Entry("PIQP, QPs", "separate.PIQP", "piqp", "QPs", families=L2),
        Entry("Clarabel, QPs", "separate.Clarabel", "clarabel", "QPs", families=L2),
        Entry("MOREAU, QPs", "separate.Moreau", "moreau", "QPs", families=L2),
        Entry("DAQP, MIQP", "miqp.DAQP", "daqp", "MIQP", families=L2),
        Entry("Gurobi, MIQP", "miqp.Gurobi", "gurobipy", "MIQP", families=L2),
        Entry("discopt, MIQP", "discopt.Model", "discopt", "MIQP", families=L2),
        Entry("DRL", "drl.Refinement", "pishield", "in order", families=("tables",)),
    )
}
