// What a basis says, checked by the rows themselves.
#include <algorithm>
#include <cmath>

#include "gdpnet/extended/simplex.hpp"
#include "gdpnet/tolerances.hpp"
#include "gdpnet/twofold.hpp"

namespace gdpnet::extended {

namespace {

void add_row(const SparseRows& rows, Index i, double factor, double* sum) {
    for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) sum[rows.column[e]] += factor * rows.coefficient[e];
}

}  // namespace

namespace {

// The same at twice the precision.
void add_row_twice(const SparseRows& rows, Index i, double factor, double* high, double* low) {
    for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) {
        const Index j = rows.column[e];
        Twofold sum{high[j], low[j]};
        sum.add_product(factor, rows.coefficient[e]);
        high[j] = sum.high;
        low[j] = sum.low;
    }
}

double excess_twice(const SparseRows& rows, Index i, const double* z) {
    Twofold sum;
    for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) sum.add_product(rows.coefficient[e], z[rows.column[e]]);
    sum.add(-rows.rhs[i]);
    return sum.value();
}

// How far the cost of a column falls at most from where it is, where its multipliers rise by `rate` a unit: its own
// cost is convex, and its ends are as far as an optimum goes.
inline double fall(const Dictionary& dic, Index j, double rate) {
    const double at = dic.value[j];
    double weight = 0.0, kink = at;
    if (j < dic.outputs && dic.place[j] < 0) weight = dic.weight[j], kink = dic.kink[j];
    // A basic column is on its piece, which is nowhere above the cost.
    const double up = rate + (at < kink ? -weight : weight), down = (at > kink ? -weight : weight) - rate;
    if (up >= 0.0 && down >= 0.0) return 0.0;
    const bool rises = up < 0.0;
    const double slope = rises ? up : down, way = rises ? dic.most(j) - at : at - dic.lower[j];
    if (way <= 0.0) return 0.0;
    const double first = std::abs(kink - at);
    if (first >= way || (rises ? at >= kink : at <= kink)) return -slope * way;
    return -slope * first + std::max(0.0, -(slope + 2.0 * weight)) * (way - first);
}

// A tight row's multiplier is its slack's reduced cost. Whatever they are, where those of inequalities are not
// negative, the rows times their multipliers, added to the cost, are nowhere above it where rows hold: the least
// value of that over the columns' bounds, column by column, is a lower bound. Returns what it lacks to the objective
// at the current point.
template <bool twice>
double unproved(const Dictionary& dic, const SparseRows& rows, bool& tight) {
    double* high = dic.factor.data();
    double* low = high + dic.n;
    std::fill(high, high + (twice ? 2 : 1) * dic.n, 0.0);
    double lost = 0.0;
    for (Index p = 0; p < dic.n; ++p) {
        if (!is_row(dic.nonbasic[p])) continue;
        const Index i = row_of(dic.nonbasic[p]);
        const double* z = dic.value.data();
        const double excess = twice ? excess_twice(rows, i, z) : rows.excess(i, z);
        if (std::abs(excess) > kDrift * rows.tolerance[i]) tight = false;
        const double multiplier = rows.equality[i] ? dic.reduced[p] : std::max(dic.reduced[p], 0.0);
        if (multiplier == 0.0) continue;
        if constexpr (twice) {
            add_row_twice(rows, i, multiplier, high, low);
        } else {
            if (std::abs(multiplier) > kLargePrice) return kInfinity;
            add_row(rows, i, multiplier, high);
        }
        lost -= multiplier * excess;
    }
    for (Index j = 0; j < dic.n; ++j) {
        const double rate = high[j] + dic.slope[j];  // 0 of what is not basic
        lost += fall(dic, j, twice ? rate + low[j] : rate);
    }
    return lost;
}

// Whether no row is tight, and every column is where it costs least.
bool is_cheapest(const Dictionary& dic) {
    if (dic.basics > 0) return false;
    for (Index j = 0; j < dic.outputs; ++j) {
        const double at = dic.value[j], kink = dic.kink[j];
        if ((at < kink && at < dic.upper[j]) || (at > kink && at > dic.lower[j])) return false;
    }
    return true;
}

}  // namespace

Proof proof(const Dictionary& dic, const SparseRows& rows, double objective) {
    bool tight = true;
    if (is_cheapest(dic)) return {objective, tight};
    double lost = unproved<false>(dic, rows, tight);
    if (!is_proved(objective - lost, objective)) lost = unproved<true>(dic, rows, tight);
    return {objective - lost, tight};
}

// The leaving quantity's own inequality and the tight rows', each times a multiplier that is not negative, add up to
// one inequality over the columns. It contradicts their bounds if even the lowest value of its left side is above
// its right side, by more than the rows' tolerances add up to: a basis close to singular has large multipliers, and
// proves nothing.
bool is_contradictory(const Dictionary& dic, const SparseRows& rows, Small leaving, double target, double direction) {
    double* sum = dic.factor.data();
    std::fill(sum, sum + dic.n, 0.0);
    double right, allowed;
    if (is_row(leaving)) {
        const Index i = row_of(leaving);
        add_row(rows, i, direction, sum);
        right = direction * rows.rhs[i];
        allowed = kAccepted * std::max(1.0, std::abs(rows.rhs[i]));
    } else {
        sum[leaving] = -direction;
        right = -direction * target;
        allowed = kAccepted * std::max(1.0, std::abs(target));
    }
    for (Index p = 0; p < dic.n; ++p) {
        if (!is_row(dic.nonbasic[p])) continue;
        const Index i = row_of(dic.nonbasic[p]);
        const double multiplier = -direction * dic.alpha[p];
        if (multiplier == 0.0 || (multiplier < 0.0 && !rows.equality[i])) continue;
        add_row(rows, i, multiplier, sum);
        right += multiplier * rows.rhs[i];
        allowed += std::abs(multiplier) * rows.tolerance[i];
    }
    double lowest = 0.0;
    for (Index j = 0; j < dic.n; ++j) {
        const double end = sum[j] > 0.0 ? dic.lower[j] : dic.most(j);
        if (sum[j] != 0.0) lowest += sum[j] * end;
    }
    return lowest - right > allowed;
}

}  // namespace gdpnet::extended
