// Multipliers that raise the bound by parts; see parts.hpp.
//
// The bound is a sum of concave functions of the multipliers, one for each part. A point that solved a part is a
// linear function above its part's: what the point costs, and what the rows that couple charge there. The next
// multipliers are those where the least of such functions, summed over the parts, is highest, within a box about the
// best ones so far: beyond it the functions say little. Whatever comes out is a choice of multipliers, all of which
// give bounds, so nothing here has to be exact.
#pragma once

#include <vector>

#include "gdpnet/linear.hpp"

namespace gdpnet {

// The linear function of a point of a part.
struct Cut {
    Index part;
    double constant;
    std::vector<double> rate;  // by coupling row
};

class Bundle {
public:
    std::vector<double> centre;  // the best multipliers so far, by coupling row
    std::vector<double> right;   // right sides of the coupling rows
    Flags free;                  // by coupling row: whether it is an equation
    Index parts = 0;
    double reach = 1.0;          // half the width of the box
    std::vector<Cut> cuts;

    // Writes multipliers, and returns what the functions let expect of them; below all where it fails.
    double propose(std::vector<double>& multipliers) const;
};

}  // namespace gdpnet
