// Constants and tolerances of the core, one section for each part.
#pragma once

#include "gdpnet/arrays.hpp"

namespace gdpnet {

// ---- the search, and the linear program at its nodes
constexpr double kFeasibility = 1e-10;  // a scaled row (largest coefficient about 1) is violated beyond this
constexpr double kAccepted = 1e-9;      // ... but no contradiction is concluded from less than this
constexpr double kRounding = 1e-14;     // what arithmetic leaves of a whole number that rows determine, relative

// ---- the quadratic program at a node, and the least norm

// ---- the extended simplex of CNF and partial DNF
namespace extended {
constexpr double kDualSlack = 1e-11;   // Harris: how far a reduced cost may overshoot for a larger pivot
constexpr double kNoPivot = 1e-11;     // an entry below this counts as zero
constexpr double kSmallPivot = 1e-6;   // refactorise before trusting a pivot below this
constexpr Index kRefactorAge = 120;    // pivots after which the tableau is computed anew
constexpr double kRaised = 1e-13;      // by less the objective has not moved, relative
constexpr double kImplied = 1e-12;     // a bound that other rows and bounds imply within this is left out, relative
constexpr double kDrift = 10.0;        // tolerances by which a tight row of the final basis may miss its right side
}  // namespace extended

// ---- the regularised program of the DNF

// ---- the interior point of CNF and partial DNF

}  // namespace gdpnet
