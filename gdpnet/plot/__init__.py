"""Pictures: `ax` in, `ax` out. They need matplotlib, the extra `gdpnet[plot]`.

| module | what is in it |
|---|---|
| `region` | `plot_region`: where rules hold in the plane of two outputs, and its relaxations |
| `_lifted` | `plot_lifted`: one output and its distance: what the layer minimises over |
| `_rule_graph` | `plot_rule_graph`: which rules interact |
| `_sizes` | `plot_sizes`: how the program grows with basic steps |
| `_satisfaction` | `plot_satisfaction`: how often predictions satisfy each rule |
| `_sets`, `_polygons` | what is drawn: sets of points at one input, and their exact polygons |
| `style` | colours, hatches and axes that all of them share |
"""

from gdpnet.plot._lifted import plot_lifted
from gdpnet.plot._rule_graph import plot_rule_graph
from gdpnet.plot._satisfaction import plot_satisfaction
from gdpnet.plot._sizes import plot_sizes
from gdpnet.plot.region import plot_region

__all__ = ["plot_lifted", "plot_region", "plot_rule_graph", "plot_satisfaction", "plot_sizes"]
