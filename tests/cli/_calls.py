"""Commands called in process, and a model that makes certain what they should say."""

from pathlib import Path

from typer.testing import CliRunner, Result

from gdpnet.cli.app import app

MODELS = Path(__file__).parents[2] / "models"

# t runs through 0 .. n-1, so `late` is active on exactly half; y lies in [0, 1], so `never` and
# `always` are certain and `gap` holds for half of all uniform predictions.
MODEL = """
import gdpnet
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction


def build():
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 1))
    m.z = pyo.Var(bounds=(0, 1))
    m.gap = Disjunction(expr=[[m.y <= 0.25], [m.y >= 0.75]])
    m.late = Disjunction(expr=[[m.y <= 1], [m.y >= 0.9]])
    m.never = Disjunction(expr=[[m.y >= 2], [m.y + m.z >= 3]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.late] = m.t >= HALF
    return gdpnet.RuleModel(m, outputs=[m.y, m.z], inputs=[m.t])


HALF = 500
"""

SAMPLE = """
def sample(n, split="iid", seed=0):
    if split != "iid":
        raise ValueError(f"split is {split!r}, expected 'iid'")
    return torch.arange(n, dtype=torch.float64)[:, None], torch.zeros(n, 2, dtype=torch.float64)
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def line(output: str, start: str) -> list[str]:
    """The cells of the table's line that starts so."""
    (found,) = [row for row in output.splitlines() if row.startswith(start + " ")]
    return found.removeprefix(start).replace(" %", "%").split()
