// The dual simplex method on a `Dictionary`.
//
// A step takes a violated row or basic column (see pricing.hpp) out of the basis and lets a nonbasic quantity in.
// The ratio test passes kinks and bounds (long step), allows a small dual infeasibility for a larger
// pivot (Harris) and falls back to Bland's rule when the objective stalls.
#pragma once

#include "gdpnet/extended/dictionary.hpp"
#include "gdpnet/extended/pricing.hpp"
#include "gdpnet/tolerances.hpp"
#include "gdpnet/watch.hpp"

namespace gdpnet::extended {

// A candidate of the ratio test: a nonbasic quantity that may move the right way.
struct Candidate {
    Small position;
    Small passed;    // breakpoints that the test has passed
    double size;     // gain per unit move, 0 where it cannot move any further
    double price;    // cost per unit move
    double room;     // way to the breakpoint where the cost changes
    double further;  // way from there to the next one
};

// A dictionary and what the method needs beside it.
struct Simplex {
    Dictionary dictionary;
    Pricing pricing;
    Buffer<Candidate> candidates;
    double unproved = 0.0;  // of the last optimum

    Simplex(Index columns, Index rows, Index entries)
        : dictionary(columns, rows), pricing(columns, rows, entries), candidates(columns + 1) {}
};

// Pivots smaller than this are not taken; after so many the tableau is computed anew. A careful run may find nothing to
// pivot on, but what it concludes is proved by the rows as ever.
struct Care {
    double least_pivot;
    Index age;
};
constexpr Care kUsual{kNoPivot, kRefactorAge}, kCareful{kSafePivot, kSafeAge};

enum class Optimisation { optimal, infeasible, cut_off, trouble };

// Restores feasibility of the enforced rows, raising the dual objective up to `cutoff`. Where a
// contradiction lies within rounding, the row's tolerance or the column's bound gives way.
Optimisation dual_simplex(Simplex& simplex, SparseRows& rows, double cutoff, Watch& watch, const Care& care = kUsual);

// The dual simplex, again where its basis does not give what its rows ask for; at last with care.
Optimisation settle(Simplex& simplex, SparseRows& rows, double cutoff, Watch& watch);

// Rebuilds tableau, values and reduced costs from the tight rows alone. False if singular.
bool refactor(Dictionary& dictionary, const SparseRows& rows);

// Whether the tight rows hold with equality; how much of the objective the multipliers leave unproved, infinite where
// multipliers and reduced costs do not belong together.
bool is_tight(const Dictionary& dictionary, const SparseRows& rows);
double unproved(const Dictionary& dictionary, const SparseRows& rows);

// Whether rows and bounds contradict each other, as the line `alpha` of what cannot leave says: beyond tolerances.
bool is_contradictory(const Dictionary& dictionary, const SparseRows& rows, Small leaving, double target,
                      double direction);

}  // namespace gdpnet::extended
