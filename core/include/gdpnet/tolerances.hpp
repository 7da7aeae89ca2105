// Constants and tolerances of the core, one section for each part.
#pragma once

#include "gdpnet/arrays.hpp"

namespace gdpnet {

// ---- the search, and the linear program at its nodes
constexpr double kFeasibility = 1e-10;  // a scaled row (largest coefficient about 1) is violated beyond this
constexpr double kAccepted = 1e-9;      // ... but no contradiction is concluded from less than this
constexpr double kRounding = 1e-14;     // what arithmetic leaves of a whole number that rows determine, relative
constexpr double kDualSlack = 1e-11;    // Harris: how far a reduced cost may overshoot for a larger pivot
constexpr double kNoPivot = 1e-11;      // an entry below this counts as zero
constexpr double kSmallPivot = 1e-6;    // refactorise before trusting a pivot below this
constexpr Index kRefactorAge = 60;      // pivots after which the tableau is built anew
constexpr double kImprovement = 1e-11;  // an incumbent must be beaten by this, relative to max(1, distance)
constexpr double kTableaus = 256e6;     // bytes for the tableaus of open nodes; deeper ones are built anew

// ---- the quadratic program at a node, and the least norm

// ---- the extended simplex of CNF and partial DNF

// ---- the regularised program of the DNF

// ---- the interior point of CNF and partial DNF

}  // namespace gdpnet
