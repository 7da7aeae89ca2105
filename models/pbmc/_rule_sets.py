"""Three sets of marker rules; README.md has their statistics."""

from dataclasses import dataclass

from gdpnet.bio import MarkerRule

CLASSES = (
    "CD4 T cells",
    "CD14+ Monocytes",
    "B cells",
    "CD8 T cells",
    "NK cells",
    "FCGR3A+ Monocytes",
    "Dendritic cells",
    "Megakaryocytes",
)

CD4, CD14, B, CD8, NK, FCGR3A, DC, MK = CLASSES


@dataclass(frozen=True)
class RuleSet:
    """Rules, and where their genes are looked up: `.raw` (log-normalised) or `X` (scaled)."""

    markers: tuple[MarkerRule, ...]
    use_raw: bool


RULE_SETS = {
    # The markers of scanpy's tutorial, with thresholds that make them precise.
    "A": RuleSet(
        (
            MarkerRule(["IL7R", "CD3D"], [CD4, CD8], tau=1.5),
            MarkerRule(["CD14", "LYZ"], [CD14, FCGR3A, DC], tau=2.0),
            MarkerRule(["MS4A1", "CD79A"], [B], tau=1.0),
            MarkerRule(["CD8A", "CD8B"], [CD8], tau=1.0),
            MarkerRule(["GNLY", "NKG7"], [NK, CD8], tau=1.5),
            MarkerRule(["FCGR3A", "MS4A7"], [FCGR3A, NK], tau=1.5),
            MarkerRule(["FCER1A", "CST3"], [DC, CD14, FCGR3A], tau=2.5),
            MarkerRule(["PPBP", "PF4"], [MK], tau=2.0),
        ),
        use_raw=True,
    ),
    # One gene each, out of those that the network sees.
    "B": RuleSet(
        (
            MarkerRule("LTB", [CD4, B, CD8], tau=0.5),
            MarkerRule("S100A8", [CD14], tau=1.0),
            MarkerRule("MS4A1", [B], tau=1.0),
            MarkerRule("GZMK", [CD8], tau=1.0),
            MarkerRule("NKG7", [NK, CD8], tau=1.0),
            MarkerRule("GNLY", [NK, CD8], tau=1.0),
            MarkerRule("FCGR3A", [FCGR3A, NK], tau=1.0),
            MarkerRule("FCER1A", [DC], tau=1.0),
            MarkerRule("CST3", [CD14, FCGR3A, DC], tau=1.0),
            MarkerRule("PPBP", [MK], tau=1.0),
        ),
        use_raw=False,
    ),
    # Loose: active in most cells, several at a time, often wrong.
    "C": RuleSet(
        (
            MarkerRule("LTB", [CD4, CD8, B], tau=0.0),
            MarkerRule("TYROBP", [CD14, FCGR3A, DC, NK], tau=0.0),
            MarkerRule("CST3", [CD14, FCGR3A, DC, MK], tau=0.0),
            MarkerRule(["CD79A", "CD79B"], [B, FCGR3A], tau=0.0),
            MarkerRule("NKG7", [NK, CD8], tau=0.0),
            MarkerRule("FCGR3A", [FCGR3A, NK], tau=0.0),
            MarkerRule(["HLA-DPB1", "HLA-DRB1"], [B, DC, CD14, FCGR3A], tau=0.0),
            MarkerRule("PPBP", [MK], tau=0.5),
            MarkerRule("FCER1A", [DC], tau=0.5),
        ),
        use_raw=False,
    ),
}
