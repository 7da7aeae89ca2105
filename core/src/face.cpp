#include "gdpnet/face.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

bool make_orthonormal(Table<double>& basis, Table<double>& triangle, Index count, Vector<const double> metric) {
    const Index n = basis.width;
    const Vector<double> own = basis[count];
    double before = 0.0, after = 0.0;
    for (Index j = 0; j < n; ++j) before += own[j] * own[j] * metric[j];
    for (Index t = 0; t < count; ++t) {
        const Vector<double> other = basis[t];
        double share = 0.0;
        for (Index j = 0; j < n; ++j) share += own[j] * other[j] * metric[j];
        triangle(count, t) = share;
        for (Index j = 0; j < n; ++j) own[j] -= share * other[j];
    }
    for (Index j = 0; j < n; ++j) after += own[j] * own[j] * metric[j];
    if (after <= kDependentTight * before || before == 0.0) return false;
    const double length = std::sqrt(after);
    triangle(count, count) = length;
    for (Index j = 0; j < n; ++j) own[j] /= length;
    return true;
}

Face::Face(const Component& component, bool kinks)
    : rows_(component.rows), logic_(component.logic), kinks_(kinks), enforced_(component.rows.equality.size()) {
    const Index n = rows_.columns();
    free_.assign(n, 0);
    follows_.assign(n, 0);
    for (auto* values : {&inverse_, &row_, &right_, &multiplier_}) values->resize(n);
    for (auto* table : {&dense_, &basis_, &triangle_}) *table = Table<double>(n, n);
    tight_.resize(n);
}

void Face::vjp(const Given& given, Vector<const std::int8_t> assignment, Vector<const double> z,
               Vector<double> gradient, Vector<double> to_yhat, Vector<double> to_bound, Matrix<double> to_varying) {
    const Index n = rows_.columns(), outputs = rows_.outputs;
    // What is where its prediction is, is held by nothing.
    const bool unmoved = std::equal(z.begin(), z.begin() + outputs, given.yhat.begin());
    for (Index j = 0; j < n; ++j) {
        const bool at_bound = z[j] <= rows_.lower[j] || z[j] >= rows_.upper[j];
        const double weight = j < outputs ? given.weights[j] * given.weights[j] : 0.0;
        follows_[j] = (kinks_ || unmoved) && j < outputs && z[j] == given.yhat[j];
        free_[j] = !(follows_[j] || at_bound || rows_.integer[j]);
        inverse_[j] = 1.0 / (weight > 0.0 ? weight : kAuxiliaryWeight);
    }
    mark_enforced(rows_, logic_, assignment, enforced_);
    collect_tight(given, z);
    // v = (A D^-1 A')^-1 A D^-1 g, and -l the same of D (y - yhat), with A = triangle basis.
    for (Index t = 0; t < count_; ++t) {
        right_[t] = multiplier_[t] = 0.0;
        for (Index j = 0; j < n; ++j) {
            if (!free_[j]) continue;
            right_[t] += basis_(t, j) * inverse_[j] * gradient[j];
            if (j < outputs) multiplier_[t] -= basis_(t, j) * (z[j] - given.yhat[j]);
        }
    }
    solve_transposed(right_);
    solve_transposed(multiplier_);
    for (Index t = 0; t < count_; ++t) {
        const Index i = tight_[t], place = rows_.place[i];
        to_bound[i] += right_[t];
        for (Index j = 0; j < n; ++j) {
            gradient[j] -= right_[t] * dense_(t, j);
            if (place >= 0) to_varying(place, j) -= right_[t] * z[j];
        }
    }
    for (Index t = 0; t < count_; ++t) {  // the gradient is D u by now
        const Index place = rows_.place[tight_[t]];
        if (place < 0) continue;
        for (Index j = 0; j < n; ++j)
            if (free_[j]) to_varying(place, j) -= multiplier_[t] * (inverse_[j] * gradient[j]);
    }
    for (Index j = 0; j < outputs; ++j)
        if (free_[j] || follows_[j] || rests_freely(j, given, z)) to_yhat[j] = gradient[j];
}

// Whether a column is on a bound only because its prediction is, and no tight row has anything to do with it.
bool Face::rests_freely(Index j, const Given& given, Vector<const double> z) const {
    if (kinks_ || rows_.integer[j] || z[j] != given.yhat[j]) return false;
    for (Index t = 0; t < count_; ++t)
        if (dense_.values[t * dense_.width + j] != 0.0) return false;
    return true;
}

// Coefficients of a row in the user's units, dense.
void Face::read_row(const Given& given, Index i) {
    if (rows_.place[i] >= 0) {
        const auto line = given.varying[rows_.place[i]];
        std::copy(line.begin(), line.end(), row_.begin());
        return;
    }
    std::fill(row_.begin(), row_.end(), 0.0);
    for (Index e = rows_.start[i]; e < rows_.start[i + 1]; ++e)
        row_[rows_.column[e]] = rows_.coefficient[e] / rows_.scale[i];
}

// Finds the tight rows that do not depend on those before them, and makes them orthonormal.
void Face::collect_tight(const Given& given, Vector<const double> z) {
    const Index n = rows_.columns();
    count_ = 0;
    for (Index i = 0; i < rows_.count() && count_ < n; ++i) {
        if (!enforced_[i]) continue;
        read_row(given, i);
        double activity = 0.0, largest = std::max(1.0, std::abs(given.bound[i]));
        for (Index j = 0; j < n; ++j) {
            activity += row_[j] * z[j];
            largest = std::max(largest, std::abs(row_[j]));
        }
        if (!(std::abs(activity - given.bound[i]) <= kTight * largest)) continue;
        for (Index j = 0; j < n; ++j) {
            dense_(count_, j) = row_[j];
            basis_(count_, j) = free_[j] ? row_[j] : 0.0;
        }
        if (make_orthonormal(basis_, triangle_, count_, inverse_)) tight_[count_++] = i;
    }
}

// Solves `triangle' x = right` in place.
void Face::solve_transposed(std::vector<double>& right) const {
    for (Index t = count_ - 1; t >= 0; --t) {
        for (Index c = t + 1; c < count_; ++c) right[t] -= triangle_.values[c * triangle_.width + t] * right[c];
        right[t] /= triangle_.values[t * triangle_.width + t];
    }
}

}  // namespace gdpnet
