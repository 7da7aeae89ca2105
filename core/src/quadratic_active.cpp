// The active rows of the quadratic program, and the factor of their products.
#include "gdpnet/quadratic.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

// Writes a row as a dense vector and returns its right side.
double Quadratic::write_row(Index code, double oriented, Vector<double> target) const {
    const Index i = row_of(code);
    const double sign = code < m ? oriented : -oriented;
    std::fill(target.begin(), target.end(), 0.0);
    for (Index e = start[i]; e < start[i + 1]; ++e) target[column[e]] += sign * coefficient[e];
    return sign * rhs[i];
}

bool Quadratic::activate(Index code, double oriented, double value) {
    const Index k = active_count;
    if (k >= Index(active.size())) return false;
    active[k] = code;
    orientation[k] = oriented;
    multiplier[k] = value;
    right_[k] = write_row(code, oriented, dense_[k]);
    mark[code] |= kActive;
    active_count = k + 1;
    return true;
}

void Quadratic::release() {
    for (Index k = 0; k < active_count; ++k) mark[active[k]] &= std::uint8_t(~kActive);
    active_count = 0;
    factored_ = 0;
}

void Quadratic::deactivate(Index k) {
    mark[active[k]] &= std::uint8_t(~kActive);
    const Index last = active_count - 1;
    for (Index i = k; i < last; ++i) {
        active[i] = active[i + 1];
        orientation[i] = orientation[i + 1];
        multiplier[i] = multiplier[i + 1];
        right_[i] = right_[i + 1];
        std::copy(dense_[i + 1].begin(), dense_[i + 1].end(), dense_[i].begin());
    }
    active_count = last;
    factored_ = std::min(factored_, k);
}

// The product of two rows over the free columns, in the metric of the inverse curvatures.
double Quadratic::product(const double* one, const double* other) const {
    if (price == 0.0) {
        // Four sums side by side: without kinks there are many free columns.
        const double* inverse = inverse_.data();
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        Index j = 0;
        for (; j + 4 <= n; j += 4)
            for (Index k = 0; k < 4; ++k) sum[k] += one[j + k] * other[j + k] * inverse[j + k];
        for (; j < n; ++j) sum[0] += one[j] * other[j] * inverse[j];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    double total = 0.0;
    for (Index j = 0; j < n; ++j)
        if (state[j] == Column::free) total += one[j] * other[j] / curvature[j];
    return total;
}

// Brings the factor up to date. False where rows depend on each other.
bool Quadratic::factor() {
    for (Index i = factored_; i < active_count; ++i) {
        const double* row = dense_[i].data();
        double* line = schur_[i].data();
        for (Index k = 0; k <= i; ++k) line[k] = product(row, dense_[k].data());
        const double diagonal = line[i];
        for (Index k = 0; k <= i; ++k) {
            const double* other = schur_[k].data();
            double total = line[k];
            for (Index e = 0; e < k; ++e) total -= line[e] * other[e];
            if (k < i) {
                line[k] = total / other[k];
            } else if (total <= kDependentPivot * diagonal || !(total > 0.0)) {
                return false;
            } else {
                line[i] = std::sqrt(total);
            }
        }
        factored_ = i + 1;
    }
    return true;
}

// Overwrites `rate_` by the solution for it as right side.
void Quadratic::solve_factored() {
    for (Index i = 0; i < active_count; ++i) {
        const double* line = schur_[i].data();
        double total = rate_[i];
        for (Index k = 0; k < i; ++k) total -= line[k] * rate_[k];
        rate_[i] = total / line[i];
    }
    if (price == 0.0) {  // by lines, which are read faster than columns
        for (Index i = active_count - 1; i >= 0; --i) {
            const double* line = schur_[i].data();
            const double value = rate_[i] /= line[i];
            for (Index k = 0; k < i; ++k) rate_[k] -= line[k] * value;
        }
        return;
    }
    for (Index i = active_count - 1; i >= 0; --i) {
        double total = rate_[i];
        for (Index k = i + 1; k < active_count; ++k) total -= schur_(k, i) * rate_[k];
        rate_[i] = total / schur_(i, i);
    }
}

// Rates of x and of the multipliers as the multiplier of `normal_` rises. `fall` is the rate at which
// the excess falls, 0 if `normal_` depends on the active rows. False on failure.
bool Quadratic::find_direction(double& fall) {
    if (!factor()) return false;
    const double size = product(normal_.data(), normal_.data());
    for (Index i = 0; i < active_count; ++i) rate_[i] = -product(dense_[i].data(), normal_.data());
    solve_factored();
    // By lines of the active rows, so that columns are worked on side by side.
    std::copy(normal_.begin(), normal_.end(), slope_rate_.begin());
    for (Index i = 0; i < active_count; ++i) {
        const double* row = dense_[i].data();
        const double rate = rate_[i];
        for (Index j = 0; j < n; ++j) slope_rate_[j] += rate * row[j];
    }
    fall = 0.0;
    for (Index j = 0; j < n; ++j) {
        step_[j] = 0.0;
        if (state[j] != Column::free) continue;
        const double total = slope_rate_[j];
        step_[j] = -total / curvature[j];
        fall += total * total / curvature[j];
    }
    if (size == 0.0 || fall <= kDependent * size) fall = 0.0;
    return true;
}

}  // namespace gdpnet
