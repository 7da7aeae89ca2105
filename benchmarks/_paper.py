"""Numbers of the paper, as printed there."""

# Variables and constraints of the table "LP size and inference-time scaling", by number of rules.
SIZES = {
    "CNF": {
        0: (9, 20),
        1: (20, 67), 2: (34, 123.2), 3: (48, 179.3), 4: (62, 235.7), 5: (76, 292), 6: (87, 207),
        7: (101, 241), 8: (115, 275), 9: (129, 309), 10: (143, 343),
    },
    "DNF": {
        0: (9, 20),
        1: (23, 73.1), 2: (37, 129.5), 3: (65, 246.5), 4: (121, 491), 5: (233, 997),
        6: (454, 1321), 7: (902, 2761), 8: (1798, 5769), 9: (3590, 12041), 10: (7174, 25097),
    },
}  # fmt: skip

# Its seconds a sample, from no rule on.
SECONDS = {
    "CNF": [
        .006599, .008361, .008230, .008023, .009787, .008193, .005307, .005601, .006087, .007065,
        .007796,
    ],
    "DNF": [
        .009122, .007077, .007697, .008667, .010559, .013100, .019194, .041093, .107464, .267479,
        .920017,
    ],
}  # fmt: skip
# A sample of the cooling task, one by one.
INFERENCE = {"base": "<1 us", "penalty": "<1 us", "cnf": "25.03 ms", "dnf": "28.62 ms"}
# Variables, then constraints, with at least so many active rules: mean and deviation, span.
TEST_SET_SIZES = {
    ("CNF", 1): ("27.78 ± 9.75", "20 to 62", "98.28 ± 39.11", "67 to 235"),
    ("DNF", 1): ("32.51 ± 14.53", "23 to 121", "111.94 ± 60.27", "73 to 485"),
    ("CNF", 2): ("37.50 ± 6.54", "34 to 62", "137.28 ± 26.29", "123 to 235"),
    ("DNF", 2): ("44.39 ± 14.86", "37 to 121", "160.53 ± 62.69", "129 to 485"),
}
