#include "gdpnet/curved_face.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gdpnet/face.hpp"
#include "gdpnet/vertex.hpp"

namespace gdpnet {

CurvedFace::CurvedFace(const Component& component, bool kinks)
    : rows_(component.rows),
      logic_(component.logic),
      kinks_(kinks),
      sample_(component.rows),
      curved_(component.rows),
      enforced_(component.rows.equality.size()) {
    const Index n = rows_.columns();
    free_.assign(n, 0);
    follows_.assign(n, 0);
    for (auto* values : {&metric_, &second_, &multiplier_, &price_, &u_, &row_}) values->assign(n, 0.0);
    for (auto* values : {&position_, &tight_, &place_, &every_}) values->assign(n, -1);
    std::iota(every_.begin(), every_.end(), Index(0));
    for (auto* table : {&line_, &basis_, &triangle_, &hessian_}) *table = Table<double>(n, n);
    matrix_ = Table<double>(2 * n, 2 * n);
    right_.assign(2 * n, 0.0);
}

void CurvedFace::vjp(const Given& given, Vector<const std::int8_t> assignment, Vector<const double> z,
                     Vector<double> gradient, Vector<double> to_yhat, Vector<double> to_bound, Matrix<double> to_varying) {
    const Index n = rows_.columns(), outputs = rows_.outputs;
    sample_.load(given.varying, given.bound);
    sort_columns(given, z);
    mark_enforced(rows_, logic_, assignment, enforced_);
    collect_tight(given, z);
    find_multipliers(given, z);
    if (!solve(z, gradient)) return;  // nothing is known: no gradient
    for (Index t = 0; t < count_; ++t) {
        charge_row(tight_[t], multiplier_[t], price_[t], z, to_bound, to_varying);
        if (place_[t] >= 0) charge_arguments(place_[t], multiplier_[t], price_[t], z, to_bound, to_varying);
    }
    for (Index j = 0; j < outputs; ++j) {
        if (free_[j]) {
            to_yhat[j] = second_[j] * u_[j];
        } else if (follows_[j]) {
            double total = gradient[j];
            for (Index i = 0; i < n; ++i) total -= u_[i] * hessian_(i, j);
            for (Index t = 0; t < count_; ++t) total -= price_[t] * line_(t, j);
            to_yhat[j] = total;
        }
    }
}

void CurvedFace::sort_columns(const Given& given, Vector<const double> z) {
    const Index n = rows_.columns(), outputs = rows_.outputs;
    // What is where its prediction is, is held by nothing.
    const bool unmoved = std::equal(z.begin(), z.begin() + outputs, given.yhat.begin());
    free_count_ = 0;
    for (Index j = 0; j < n; ++j) {
        const bool at_bound = z[j] <= rows_.lower[j] || z[j] >= rows_.upper[j];
        const double weight = j < outputs ? given.weights[j] * given.weights[j] : 0.0;
        follows_[j] = (kinks_ || unmoved) && j < outputs && z[j] == given.yhat[j];
        free_[j] = !(follows_[j] || at_bound || rows_.integer[j]);
        second_[j] = kinks_ ? 0.0 : weight > 0.0 ? weight : kAuxiliaryWeight;
        metric_[j] = kinks_ ? 1.0 : 1.0 / second_[j];
        position_[j] = free_[j] ? free_count_++ : -1;
    }
}

// Whether a curve's arguments are 0, where it has no derivative or none that holds them.
bool CurvedFace::at_apex(Index c, Vector<const double> z) const {
    const Curves& curves = rows_.curves;
    for (Index k = curves.start[c]; k < curves.start[c + 1]; ++k) {
        const Curves::Curve& curve = curves.curve[k];
        if (curve.shape != Shape::norm && !(curve.shape == Shape::squares && sample_.largest[curves.row[c]] == 0.0)) return false;
        for (Index a = curve.first; a < curve.last; ++a) {
            const Index i = curves.argument[a];
            if (std::abs(sample_.excess(i, z.data())) > kTightArgument * std::max(1.0, std::abs(sample_.row[i].rhs))) return false;
        }
    }
    return true;
}

// Lists the tight rows that do not depend on those before them.
void CurvedFace::collect_tight(const Given& given, Vector<const double> z) {
    const Curves& curves = rows_.curves;
    count_ = 0;
    for (Index i = 0; i < rows_.given(); ++i) {
        if (!enforced_[i]) continue;
        const Index c = curves.place[i];
        const double size = std::max({1.0, std::abs(given.bound[i]), sample_.largest[i]});
        const double over = c >= 0 ? CurvedRows::excess(sample_, c, z.data()) : sample_.excess(i, z.data()) / sample_.scale[i];
        if (!(std::abs(over) <= kTight * size)) continue;
        if (c < 0 || !at_apex(c, z)) {
            add_tight(i, c, z);
            continue;
        }
        for (Index k = curves.start[c]; k < curves.start[c + 1]; ++k)
            for (Index a = curves.curve[k].first; a < curves.curve[k].last; ++a) add_tight(curves.argument[a], -1, z);
        add_tight(i, -1, z);  // and its terms, if it has any
    }
}

void CurvedFace::add_tight(Index i, Index c, Vector<const double> z) {
    const Index n = rows_.columns();
    if (count_ >= free_count_) return;
    const Vector<double> line = line_[count_];
    if (c >= 0) {
        curved_.gradient(sample_, c, z.data(), line);
    } else {
        std::fill(line.begin(), line.end(), 0.0);
        for (Slot e = sample_.row[i].first; e < sample_.row[i].last; ++e)
            line[sample_.entry[e].column] += sample_.entry[e].coefficient / sample_.scale[i];
    }
    for (Index j = 0; j < n; ++j) basis_(count_, j) = free_[j] ? line[j] : 0.0;
    if (!make_orthonormal(basis_, triangle_, count_, metric_)) return;
    tight_[count_] = i;
    place_[count_++] = c;
}

// `cost + J' l = 0` on the free columns, in the least squares where rounding is left.
void CurvedFace::find_multipliers(const Given& given, Vector<const double> z) {
    const Index outputs = rows_.outputs;
    for (Index t = 0; t < count_; ++t) {
        multiplier_[t] = 0.0;
        for (Index j = 0; j < outputs; ++j) {
            if (!free_[j]) continue;
            const double away = z[j] - given.yhat[j];
            const double cost = !kinks_ ? second_[j] * away : away > 0.0 ? given.weights[j] : -given.weights[j];
            multiplier_[t] -= basis_(t, j) * metric_[j] * (given.weights[j] > 0.0 ? cost : 0.0);
        }
    }
    for (Index t = count_ - 1; t >= 0; --t) {
        for (Index k = t + 1; k < count_; ++k) multiplier_[t] -= triangle_(k, t) * multiplier_[k];
        multiplier_[t] /= triangle_(t, t);
    }
    for (Index t = 0; t < count_; ++t)
        if (place_[t] >= 0) multiplier_[t] = std::max(multiplier_[t], 0.0);
}

// The adjoint equations; false where they are singular.
bool CurvedFace::solve(Vector<const double> z, Vector<const double> gradient) {
    const Index n = rows_.columns(), f = free_count_, size = f + count_;
    std::fill(hessian_.values.begin(), hessian_.values.end(), 0.0);
    double largest = 1.0;
    for (Index t = 0; t < count_; ++t)
        if (place_[t] >= 0 && multiplier_[t] > 0.0)
            curved_.add_curvature(sample_, place_[t], z.data(), multiplier_[t], every_, hessian_);
    for (double value : hessian_.values) largest = std::max(largest, std::abs(value));
    for (Index i = 0; i < n; ++i) {
        if (!free_[i]) continue;
        const Index at = position_[i];
        for (Index j = 0; j < n; ++j)
            if (free_[j]) matrix_(at, position_[j]) = hessian_(i, j);
        // Of an l1-nearest point, and of auxiliaries, nothing but curves holds what rows leave free; where none does it
        // may stay.
        matrix_(at, at) += kinks_ || second_[i] == kAuxiliaryWeight ? kStiffness * largest : second_[i];
        for (Index t = 0; t < count_; ++t) matrix_(at, f + t) = matrix_(f + t, at) = line_(t, i) / triangle_(t, t);
        right_[at] = gradient[i];
    }
    for (Index t = 0; t < count_; ++t) {
        for (Index k = 0; k < count_; ++k) matrix_(f + t, f + k) = 0.0;
        right_[f + t] = 0.0;
    }
    solve_in_place(matrix_, right_, size);
    for (Index k = 0; k < size; ++k)
        if (!std::isfinite(right_[k])) return false;
    for (Index j = 0; j < n; ++j) u_[j] = free_[j] ? right_[position_[j]] : 0.0;
    for (Index t = 0; t < count_; ++t) price_[t] = right_[f + t] / triangle_(t, t);
    return true;
}

void CurvedFace::charge_row(Index i, double multiplier, double price, Vector<const double> z, Vector<double> to_bound,
                            Matrix<double> to_varying) const {
    to_bound[i] += price;
    if (rows_.place[i] < 0) return;
    for (Index j = 0; j < rows_.columns(); ++j) to_varying(rows_.place[i], j) -= multiplier * u_[j] + price * z[j];
}

void CurvedFace::charge_arguments(Index c, double multiplier, double price, Vector<const double> z,
                                  Vector<double> to_bound, Matrix<double> to_varying) const {
    const Curves& curves = rows_.curves;
    const auto value = [&](Index i, const double* at, bool shifted) {
        const double total = sample_.excess(i, at) + (shifted ? sample_.row[i].rhs : 0.0);
        return total / sample_.scale[i];
    };
    for (Index k = curves.start[c]; k < curves.start[c + 1]; ++k) {
        const Curves::Curve& curve = curves.curve[k];
        double square = 0.0, both = 0.0;  // t t, t T u
        for (Index a = curve.first; a < curve.last; ++a) {
            const double t = value(curves.argument[a], z.data(), false);
            square += t * t;
            both += t * value(curves.argument[a], u_.data(), true);
        }
        const double length = std::sqrt(square);
        for (Index a = curve.first; a < curve.last; ++a) {
            const Index i = curves.argument[a];
            const double t = value(i, z.data(), false), p = value(i, u_.data(), true);
            double slope, bend;  // f_a and sum_b f_ab p_b
            if (curve.shape == Shape::norm) {
                slope = t / length;
                bend = (p - t * both / square) / length;
            } else {
                slope = shape_slope(curve, t);
                bend = shape_curvature(curve, t) * p;
            }
            const double by_value = -curve.weight * (price * slope + multiplier * bend);
            const double by_move = -curve.weight * multiplier * slope;
            to_bound[i] -= by_value;
            if (rows_.place[i] < 0) continue;
            for (Index j = 0; j < rows_.columns(); ++j)
                to_varying(rows_.place[i], j) += by_value * z[j] + by_move * u_[j];
        }
    }
}

}  // namespace gdpnet
