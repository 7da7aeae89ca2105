// The dual simplex method on a `Dictionary`.
//
// A step takes a violated row or basic column (see pricing.hpp) out of the basis and lets a nonbasic quantity in.
// The ratio test passes kinks and bounds (long step), allows a small dual infeasibility for a larger
// pivot (Harris) and falls back to Bland's rule when the objective stalls.
#pragma once

#include <algorithm>
#include <cmath>

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
    double bound = -kInfinity;  // the highest that was proved of the last program

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

// The dual simplex, again where its basis does not give what its rows ask for, or where they do not prove its value;
// at last with care.
Optimisation settle(Simplex& simplex, SparseRows& rows, double cutoff, Watch& watch);

// Rebuilds tableau, values and reduced costs from the tight rows alone. False if singular.
bool refactor(Dictionary& dictionary, const SparseRows& rows);

// What the rows themselves say of a basis: a lower bound that they prove with its multipliers, and whether those that
// are tight hold with equality.
struct Proof {
    double bound;
    bool tight;
};
Proof proof(const Dictionary& dictionary, const SparseRows& rows, double objective);

// Whether a value is no more than what a bound proves.
inline bool is_proved(double bound, double value) {
    return bound >= value - kLostBound * std::max(1.0, std::abs(value));
}

// Whether rows and bounds contradict each other, as the line `alpha` of what cannot leave says: beyond tolerances.
bool is_contradictory(const Dictionary& dictionary, const SparseRows& rows, Small leaving, double target,
                      double direction);

}  // namespace gdpnet::extended
