// The rows of one sample: right sides and coefficients that depend on x, scaled like the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "gdpnet/component.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet {

// How far a column that must be whole may be from it: absolute, whatever its size.
inline double whole_slack(double x) { return kAccepted + kRounding * std::abs(x); }

struct Sample {
    const Rows& rows;
    std::vector<double> coefficient;  // (entries,), scaled
    std::vector<double> rhs;          // (m,), scaled
    std::vector<double> tolerance;    // (m,): a row is violated beyond this
    std::vector<double> scale;        // (m,)
    std::vector<double> largest;      // (m,): largest coefficient before scaling

    explicit Sample(const Rows& rows)
        : rows(rows),
          coefficient(rows.coefficient),
          rhs(rows.equality.size()),
          tolerance(rows.equality.size()),
          scale(rows.scale),
          largest(rows.largest) {}
    Sample(const Sample&) = delete;
    Sample& operator=(const Sample&) = delete;

    // Takes over right sides (m,) and coefficients that depend on x (k, n), in the user's units.
    void load(Matrix<const double> varying, Vector<const double> bound);

    // Tolerances beside large predictions. `lost` is what adding up a row may lose of its terms, relative:
    // rounding is no violation then, and whether the point is good enough is judged afterwards.
    void allow_rounding(Vector<const double> yhat, double lost);

    // `a z - b` of row i, scaled.
    double excess(Index i, const double* z) const {
        double total = 0.0;
        const Index last = rows.start[i + 1];
        for (Index e = rows.start[i]; e < last; ++e) total += coefficient[e] * z[rows.column[e]];
        return total - rhs[i];  // last, or it is lost beside large terms
    }

    // By how much row i is violated at z, scaled; negative where an inequality has room.
    double violation(Index i, const double* z) const {
        const double over = excess(i, z);
        return rows.equality[i] ? std::abs(over) : over;
    }

    bool holds(Index i, const double* z) const { return violation(i, z) <= tolerance[i]; }

    // `max(|b|, max|a|)` of a row in the user's units; 1 for a row that says 0 <= 0.
    double size(Index i) const {
        const double found = std::max(largest[i], std::abs(rhs[i]) / scale[i]);
        return found > 0.0 ? found : 1.0;
    }
};

}  // namespace gdpnet
