// Nodes whose rows touch in one point, in the l1 search.
//
// Cuts close in on such a point slowly, the more so the more columns there are, and Newton's method on its rows is singular:
// their gradients depend on each other. What is regular is where the largest curved row is least,
//
//     min s      g_k(z) <= s      a_i z <= b_i
//
// Its multipliers mu, which add up to 1, and l make L = sum mu_k g_k + sum l_i (a_i z - b_i), a convex function that is s
// there and nowhere less; every point of the node has L <= 0. So s > 0 is a contradiction. Where s is nearly 0, all points
// z + D of the node are near: with H the second derivatives of L, and no term of L above 0,
//
//     D' H D / 2 <= -s      |grad g_k D| <= -s / mu_k      |a_i D| <= -s / l_i
//
// whose squares add up to an ellipsoid. (H changes with D; L is convex, so that what holds on a small sphere around z holds
// beyond it, and twice the radius is enough.) Bounds on which columns are take part as rows do.
#include <algorithm>
#include <cmath>

#include "gdpnet/linear.hpp"

namespace gdpnet {

Linear::Touch Linear::touch() {
    touching_.clear();
    for (Index c : bent_)
        if (presses_[c]) touching_.push_back(c);
    active_codes_.clear();
    for (Index p = 0; p < n; ++p) {
        const Index code = nonbasic[p] - n;
        if (code >= 0 && !(code < m && cuts_.is_cut(code))) active_codes_.push_back(Slot(code));
    }
    for (Index j = 0; j < n; ++j) pinned_[j] = place[j] < 0 && (value[j] == lower[j] || value[j] == upper[j]);
    while (!touching_.empty()) {
        list_touching();
        effort_ += 20 * n * n;
        if (!polish_.run(sample, cuts_.curved)) return Touch::unknown;
        if (drop_pulling()) continue;
        if (polish_.height() > kAccepted * size_of_touching() + unevenness()) return Touch::nowhere;
        return find_reach() ? Touch::point : Touch::unknown;
    }
    return Touch::unknown;
}

// Writes the equations. Free are the columns that are on no bound.
void Linear::list_touching() {
    polish_.clear();
    polish_.level = true;
    polish_.x = point_;
    for (Index j = 0; j < n; ++j) {
        polish_.cost[j] = 0.0;
        if (!pinned_[j]) polish_.add_free(j);
    }
    for (const Slot code : active_codes_) write_active(code);
    for (const Index c : touching_) polish_.add_curved(c, 1.0 / double(touching_.size()));
}

// What column j on its bound presses with: below 0 where it pulls.
double Linear::bound_multiplier(Index j) {
    const double slope = polish_.slope(j);
    if (lower[j] == upper[j]) return std::abs(slope);
    return polish_.x[j] == lower[j] ? slope : -slope;
}

// Takes out what pulls most instead of pressing. False where nothing does.
bool Linear::drop_pulling() {
    double most = -kWrongMultiplier;
    Index row = -1, curve = -1, column = -1;
    for (Index j = 0; j < n; ++j)
        if (pinned_[j] && bound_multiplier(j) < most) most = bound_multiplier(j), column = j;
    for (Index k = 0; k < polish_.rows(); ++k) {
        const Index code = active_codes_[k];
        if (code < m && sample.row[code].equality) continue;
        if (polish_.row_multiplier(k) < most) most = polish_.row_multiplier(k), row = k;
    }
    for (Index k = 0; k < polish_.curved(); ++k)
        if (polish_.curved_multiplier(k) < most) most = polish_.curved_multiplier(k), curve = k;
    if (curve >= 0) {
        touching_.erase(touching_.begin() + curve);
    } else if (row >= 0) {
        active_codes_.erase(active_codes_.begin() + row);
    } else if (column >= 0) {
        pinned_[column] = 0;
    }
    return most < -kWrongMultiplier;
}

// What the right sides of the touching rows are measured by.
double Linear::size_of_touching() const {
    double total = 0.0;
    for (Index k = 0; k < polish_.curved(); ++k)
        total += polish_.curved_multiplier(k) * std::max(1.0, sample.size(sample.rows.curves.row[polish_.place(k)]));
    return total;
}

// How much less than its height L may be in the box, as its derivatives are 0 but for rounding.
double Linear::unevenness() {
    double total = 0.0;
    for (Index j = 0; j < n; ++j)
        if (!pinned_[j]) total += std::abs(polish_.slope(j)) * (upper[j] - lower[j]);
    return std::isfinite(total) ? total : kInfinity;
}

// Writes how far each column may be from the point into `reach_`. False where the touching rows leave one free, or where
// the distance is not known well enough from that.
bool Linear::find_reach() {
    double size = 1.0;
    for (Index j = 0; j < n; ++j) size = std::max(size, std::abs(polish_.x[j]));
    const double room = std::max(-polish_.height(), 0.0) + kTermRounding * size * size * size_of_touching();
    std::fill(spread_.values.begin(), spread_.values.end(), 0.0);
    double squares = 2.0 * room;
    const auto hold = [&](Vector<const double> line, double multiplier) {
        if (!(multiplier > kWrongMultiplier)) return;
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < n; ++j) spread_(i, j) += line[i] * line[j];
        squares += (room / multiplier) * (room / multiplier);
    };
    for (Index k = 0; k < polish_.curved(); ++k) {
        cuts_.curved.add_curvature(sample, polish_.place(k), polish_.x.data(), polish_.curved_multiplier(k), every_, spread_);
        hold(polish_.gradient(k), polish_.curved_multiplier(k));
    }
    for (Index k = 0; k < polish_.rows(); ++k) {
        const Index code = active_codes_[k];
        const bool equality = code < m && sample.row[code].equality;
        hold(polish_.row(k), equality ? 1.0 : polish_.row_multiplier(k));
    }
    for (Index j = 0; j < n; ++j) {
        if (!pinned_[j]) continue;
        std::fill(tangent_.begin(), tangent_.end(), 0.0);
        tangent_[j] = 1.0;
        hold(tangent_, lower[j] == upper[j] ? 1.0 : bound_multiplier(j));
    }
    return invert_spread(2.0 * std::sqrt(squares));
}

// Takes the ellipsoid D' spread D <= radius^2 apart into columns, by a Cholesky factor and the columns of its inverse.
bool Linear::invert_spread(double radius) {
    double largest = 0.0, doubt = 0.0, distance = 0.0;
    for (Index j = 0; j < n; ++j) largest = std::max(largest, spread_(j, j));
    for (Index k = 0; k < n; ++k) {
        for (Index j = 0; j < k; ++j) spread_(k, k) -= spread_(k, j) * spread_(k, j);
        if (!(spread_(k, k) > kNearlyDependent * largest)) return false;
        spread_(k, k) = std::sqrt(spread_(k, k));
        for (Index i = k + 1; i < n; ++i) {
            for (Index j = 0; j < k; ++j) spread_(i, k) -= spread_(i, j) * spread_(k, j);
            spread_(i, k) /= spread_(k, k);
        }
    }
    for (Index c = 0; c < n; ++c) {
        double square = 0.0;  // of the solution of `factor w = e_c`
        for (Index i = c; i < n; ++i) {
            double total = i == c ? 1.0 : 0.0;
            for (Index j = c; j < i; ++j) total -= spread_(i, j) * tangent_[j];
            tangent_[i] = total / spread_(i, i);
            square += tangent_[i] * tangent_[i];
        }
        reach_[c] = radius * std::sqrt(square);
        doubt += weight[c] * reach_[c];
        if (weight[c] > 0.0) distance += weight[c] * std::abs(polish_.x[c] - kink[c]);
    }
    return doubt <= kTouchDoubt * std::max(1.0, distance);
}

// The node's program where all its points are within reach of one: that is the point, if it is good for all rows.
Outcome Linear::solve_at_touch(double cutoff) {
    last_ = polish_.x;
    for (Index j = 0; j < n; ++j) {
        if (!tighten(j, last_[j] - reach_[j], Side::lower, kFromBox)) return Outcome::infeasible;
        if (!tighten(j, last_[j] + reach_[j], Side::upper, kFromBox)) return Outcome::infeasible;
    }
    const Outcome outcome = solve_linear(cutoff);
    if (outcome != Outcome::optimal) return outcome;
    point_ = last_;
    if (!rows_hold(point_.data()) || !curved_rows_hold(1.0)) return Outcome::trouble;
    return distance_of_point() >= cutoff ? Outcome::cutoff : Outcome::optimal;
}

}  // namespace gdpnet
