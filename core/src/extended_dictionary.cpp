#include <algorithm>
#include <cmath>

#include "gdpnet/extended/dictionary.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet::extended {

SparseRows::SparseRows(Index rows, Index entries)
    : start(rows + 1), column(entries), coefficient(entries), rhs(rows), tolerance(rows), equality(rows) {
    start[0] = 0;
}

bool SparseRows::holds(Index i, const double* z) const {
    double over = excess(i, z);
    if (equality[i]) over = std::abs(over);
    return over <= tolerance[i];
}

Dictionary::Dictionary(Index columns, Index rows)
    : lower(columns), upper(columns), value(columns), kink(columns), weight(columns), farthest(columns), slope(columns),
      place(columns),
      lower_source(columns), upper_source(columns), nonbasic(columns), reduced(columns), rises(columns), falls(columns),
      basic(columns), tableau(columns * columns), tight(std::size_t(rows), 0), alpha(columns),
      factor(columns * (2 * columns + 1)) {
    enforced.reserve(std::size_t(rows));
}

void Dictionary::rest(Index j, double at) {
    value[j] = at;
    reduced[j] = 0.0;
    slope[j] = 0.0;
    nonbasic[j] = Small(j);
    place[j] = Small(-1 - j);
    note_ways(j, j);
}

void Dictionary::start(Index columns, const double* low, const double* high, Index with_kinks, const double* kinks,
                       const double* weights) {
    n = columns;
    outputs = with_kinks;
    basics = 0;
    age = 0;
    for (Small row : enforced) tight[std::size_t(row)] = 0;
    enforced.clear();
    for (Index j = 0; j < n; ++j) {
        const double lo = low[j], up = high[j];
        double at;
        if (j < outputs) {
            kink[j] = kinks[j];
            weight[j] = weights[j];
            at = std::min(std::max(kinks[j], lo), up);
        } else {
            kink[j] = -kInfinity;
            weight[j] = 0.0;
            at = std::min(std::max(0.0, lo), up);
            if (lo > -kInfinity && at != lo && at != up) {
                at = -lo < up ? lo : up;
            } else if (up < kInfinity && at != lo && at != up) {
                at = up;
            }
        }
        lower[j] = lo;
        upper[j] = up;
        farthest[j] = up;
        lower_source[j] = kFromBox;
        upper_source[j] = kFromBox;
        rest(j, at);
    }
}

void Dictionary::reset_basis() {
    for (Small row : enforced) tight[std::size_t(row)] = 0;
    basics = 0;
    age = 0;
    for (Index j = 0; j < n; ++j) {
        const double lo = lower[j], up = upper[j];
        double at = 0.0;
        if (weight[j] > 0.0) {
            at = std::min(std::max(kink[j], lo), up);
        } else if (lo > -kInfinity) {
            at = lo;
        } else if (up < kInfinity) {
            at = up;
        }
        rest(j, at);
    }
}

void Dictionary::widen(Index columns) {
    const Index old = n;
    // Lines grow apart, so the last ones have to be moved first.
    for (Index k = basics - 1; k >= 0; --k) {
        double* to = tableau.data() + k * columns;
        std::copy_backward(line(k), line(k) + old, to + old);
        std::fill(to + old, to + columns, 0.0);
    }
    n = columns;
    for (Index j = old; j < n; ++j) {
        lower[j] = 0.0;
        upper[j] = kInfinity;
        farthest[j] = kInfinity;
        kink[j] = -kInfinity;
        weight[j] = 0.0;
        lower_source[j] = kFromBox;
        upper_source[j] = kFromBox;
        rest(j, 0.0);
    }
}

void Dictionary::charge(Index column, double cost) {
    // In between are columns that cost nothing: a kink on their lower bound is none.
    for (Index j = outputs; j <= column; ++j) kink[j] = lower[j];
    outputs = std::max(outputs, column + 1);
    weight[column] = cost;
}

void Dictionary::move_nonbasic(Index position, Index j, double target) {
    const double step = target - value[j];
    value[j] = target;
    note_ways(position, j);
    for (Index k = 0; k < basics; ++k) value[basic[k]] += line(k)[position] * step;
}

bool Dictionary::tighten(Index j, double bound, bool is_lower, Index source) {
    double gap;
    if (is_lower) {
        if (bound <= lower[j]) return true;
        gap = upper[j] - bound;
    } else {
        if (bound >= upper[j]) return true;
        gap = bound - lower[j];
    }
    if (gap < 0.0) {
        if (gap < -kAccepted * std::max(1.0, std::abs(bound))) return false;
        bound = is_lower ? upper[j] : lower[j];  // contradiction within rounding
    }
    (is_lower ? lower : upper)[j] = bound;
    (is_lower ? lower_source : upper_source)[j] = Small(source);
    if (place[j] < 0) {
        if (is_lower ? value[j] < bound : value[j] > bound) move_nonbasic(-1 - place[j], j, bound);
        note_ways(-1 - place[j], j);
    }
    return true;
}

bool Dictionary::enforce(const SparseRows& rows, Index row) {
    const Index first = rows.start[row], entries = rows.start[row + 1] - first;
    if (entries > 1) {
        enforced.push_back(Small(row));
        return true;
    }
    const double coefficient = entries == 1 ? rows.coefficient[first] : 0.0;
    if (coefficient == 0.0) {
        const double excess = rows.equality[row] ? std::abs(rows.rhs[row]) : -rows.rhs[row];
        return excess <= rows.tolerance[row];
    }
    const Index j = rows.column[first];
    const double bound = rows.rhs[row] / coefficient;
    if ((coefficient > 0.0 || rows.equality[row]) && !tighten(j, bound, false, row)) return false;
    return (coefficient > 0.0 && !rows.equality[row]) || tighten(j, bound, true, row);
}

double Dictionary::dual_objective() const {
    double total = 0.0;
    for (Index j = 0; j < outputs; ++j) {
        const double away = value[j] - kink[j];
        total += place[j] >= 0 ? slope[j] * away : weight[j] * std::abs(away);
    }
    return total;
}

double Dictionary::distance() const {
    double total = 0.0;
    for (Index j = 0; j < outputs; ++j) total += weight[j] * std::abs(value[j] - kink[j]);
    return total;
}

}  // namespace gdpnet::extended
