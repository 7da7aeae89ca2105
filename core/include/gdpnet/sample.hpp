// The rows of one sample: right sides and coefficients that depend on x, scaled like the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gdpnet/component.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet {

// How far a column that must be whole may be from it: absolute, whatever its size.
inline double whole_slack(double x) { return kAccepted + kRounding * std::abs(x); }

using Slot = std::int32_t;  // a column, a row, an entry, a boolean: there are few of each

struct Sample {
    // Together in memory, because they are looked at together.
    struct Row {
        double rhs;        // scaled
        double tolerance;  // it is violated beyond this
        Slot first, last;  // entries
        bool equality;
    };
    struct Entry {
        double coefficient;  // scaled
        Slot column;
    };

    const Rows& rows;
    std::vector<Row> row;         // (m,)
    std::vector<Entry> entry;     // (entries,)
    std::vector<double> scale;    // (m,)
    std::vector<double> largest;  // (m,): largest coefficient before scaling
    double accepted = kAccepted;  // no contradiction is concluded from less, relative to a row

    explicit Sample(const Rows& rows);
    Sample(const Sample&) = delete;
    Sample& operator=(const Sample&) = delete;

    // Takes over right sides (m,) and coefficients that depend on x (k, n), in the user's units. Where these are those of
    // the sample before, as all are whose rules do not depend on x, there is nothing to do.
    void load(Matrix<const double> varying, Vector<const double> bound);

    // Another number whenever something here has changed.
    long edition() const { return edition_; }

    // Tolerances beside large predictions. `lost` is what adding up a row may lose of its terms, relative:
    // rounding is no violation then, and whether the point is good enough is judged afterwards.
    void allow_rounding(Vector<const double> yhat, double lost);

    // Rows hold to the last digits, but for curved ones: between nearly parallel ones a tolerance is a long way.
    void refine();

    // Gives curved rows room, relative to their sizes. Sets without an interior get one: rounding cannot empty them
    // then, and curves have multipliers.
    void loosen_curves(double room);

    // `a z - b` of row i, scaled.
    double excess(Index i, const double* z) const {
        const Row& at = row[i];
        double total = 0.0;
        const Entry* const end = entry.data() + at.last;
        for (const Entry* e = entry.data() + at.first; e != end; ++e) total += e->coefficient * z[e->column];
        return total - at.rhs;  // last, or it is lost beside large terms
    }

    // By how much row i is violated at z, scaled; negative where an inequality has room.
    double violation(Index i, const double* z) const {
        const double over = excess(i, z);
        return row[i].equality ? std::abs(over) : over;
    }

    bool holds(Index i, const double* z) const { return violation(i, z) <= row[i].tolerance; }

    // `max(|b|, max|a|)` of a row in the user's units; 1 for a row that says 0 <= 0.
    double size(Index i) const {
        const double found = std::max(largest[i], std::abs(row[i].rhs) / scale[i]);
        return found > 0.0 ? found : 1.0;
    }

private:
    void unscale(Index i, double bound);

    std::vector<double> loaded_;  // right sides as they were given; none where the next sample's must be looked at
    long edition_ = 0;
};

}  // namespace gdpnet
