// What a basis says, checked by the rows themselves.
#include <algorithm>
#include <cmath>

#include "gdpnet/extended/simplex.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet::extended {

namespace {

void add_row(const SparseRows& rows, Index i, double factor, double* sum) {
    for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) sum[rows.column[e]] += factor * rows.coefficient[e];
}

}  // namespace

bool is_tight(const Dictionary& dic, const SparseRows& rows) {
    for (Index p = 0; p < dic.n; ++p) {
        if (!is_row(dic.nonbasic[p])) continue;
        const Index i = row_of(dic.nonbasic[p]);
        if (std::abs(rows.excess(i, dic.value.data())) > kDrift * rows.tolerance[i]) return false;
    }
    return true;
}

// A tight row's multiplier is its slack's reduced cost. Together they give every column its own: nothing to a basic
// one beside its slope, the reduced cost to another. What is missing there counts as far as a column can go, what tight
// rows miss as much as their multipliers say.
double unproved(const Dictionary& dic, const SparseRows& rows) {
    double* sum = dic.factor.data();
    std::fill(sum, sum + dic.n, 0.0);
    double largest = 1.0, lost = 0.0;
    for (Index p = 0; p < dic.n; ++p) {
        if (!is_row(dic.nonbasic[p])) continue;
        const Index i = row_of(dic.nonbasic[p]);
        add_row(rows, i, dic.reduced[p], sum);
        lost += std::abs(dic.reduced[p] * rows.excess(i, dic.value.data()));
        largest = std::max(largest, std::abs(dic.reduced[p]));
    }
    for (Index j = 0; j < dic.n; ++j) {
        const Index place = dic.place[j];
        const double asked = place >= 0 ? -dic.slope[j] : dic.reduced[-1 - place];
        const double missing = std::abs(sum[j] - asked), range = dic.upper[j] - dic.lower[j];
        if (missing > kPriceDrift * largest) return kInfinity;
        if (range < kInfinity) lost += missing * range;
    }
    return lost;
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
    double multipliers = 1.0;
    for (Index p = 0; p < dic.n; ++p) {
        if (!is_row(dic.nonbasic[p])) continue;
        const Index i = row_of(dic.nonbasic[p]);
        const double multiplier = -direction * dic.alpha[p];
        if (multiplier == 0.0 || (multiplier < 0.0 && !rows.equality[i])) continue;
        add_row(rows, i, multiplier, sum);
        right += multiplier * rows.rhs[i];
        allowed += std::abs(multiplier) * rows.tolerance[i];
        multipliers += std::abs(multiplier);
    }
    double lowest = 0.0;
    for (Index j = 0; j < dic.n; ++j) {
        const double end = sum[j] > 0.0 ? dic.lower[j] : dic.upper[j];
        if (std::abs(end) < kInfinity) {
            lowest += sum[j] * end;
        } else if (std::abs(sum[j]) > kNoPivot * multipliers) {
            return false;
        }
    }
    return lowest - right > allowed;
}

}  // namespace gdpnet::extended
