#include "gdpnet/band/pieces.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gdpnet/tolerances.hpp"

namespace gdpnet::band {

Pieces::Pieces(const Component& component)
    : component_(component),
      program_(component.rows),
      units_(component.rows),
      zero_(component.rows.lower.size()),
      lower_source_(component.rows.lower.size()),
      upper_source_(component.rows.lower.size()) {}

void Pieces::add_row(Index i) {
    Quadratic& q = program_;
    const Rows& rows = component_.rows;
    const Index start = rows.start[i], entries = rows.start[i + 1] - start;
    if (entries > 1) {
        q.enforce(i);
        return;
    }
    if (entries == 0 || q.coefficient[start] == 0.0) return;
    const Index j = rows.column[start];
    const double coefficient = q.coefficient[start], bound = q.rhs[i] / coefficient;
    if ((coefficient > 0.0 || rows.equality[i]) && bound < q.upper[j]) {
        q.upper[j] = bound;
        upper_source_[j] = i;
    }
    if ((coefficient < 0.0 || rows.equality[i]) && bound > q.lower[j]) {
        q.lower[j] = bound;
        lower_source_[j] = i;
    }
}

void Pieces::enforce_product(Vector<const double> nearest, Vector<const std::int8_t> state) {
    Quadratic& q = program_;
    const Rows& rows = component_.rows;
    const Logic& logic = component_.logic;
    q.enforce_only(0);
    for (Index j = 0; j < rows.columns(); ++j) {
        double lower = rows.lower[j], upper = rows.upper[j];
        if (rows.integer[j]) lower = upper = std::nearbyint(nearest[j]);
        q.lower[j] = (lower - units_.origin[j]) / units_.unit[j];
        q.upper[j] = (upper - units_.origin[j]) / units_.unit[j];
        lower_source_[j] = upper_source_[j] = -1;
    }
    for (const Index i : rows.global_rows) add_row(i);
    for (Index k = 0; k < logic.booleans(); ++k) {
        if (state[k] == 0) continue;
        const auto& start = state[k] > 0 ? logic.true_start : logic.false_start;
        const auto& listed = state[k] > 0 ? logic.true_row : logic.false_row;
        for (Index e = start[k]; e < start[k + 1]; ++e) add_row(listed[e]);
    }
    for (Index j = 0; j < rows.columns(); ++j) {
        if (q.lower[j] > q.upper[j]) q.lower[j] = q.upper[j];  // the product is not empty: a rounding error
    }
}

bool Pieces::read(Products& products, Index p) {
    const Quadratic& q = program_;
    const Index n = q.n;
    const auto point = products.point[p];
    const auto kind = products.kind[p];
    const auto row = products.row[p];
    Index count = 0;
    for (Index j = 0; j < n; ++j) {
        const double x = q.x[j];
        point[j] = x * units_.unit[j];
        bool above = x > 0.0 || !q.kinked[j];
        if (q.state[j] == Quadratic::Column::free) {
            above = q.side[j] >= 0.0;
        } else if (q.state[j] == Quadratic::Column::kink) {
            kind[j] = Held::at_kink;
            continue;
        } else {
            const bool at_lower = q.state[j] == Quadratic::Column::lower;
            const Index source = at_lower ? lower_source_[j] : upper_source_[j];
            if (source < 0) {
                kind[j] = Held::at_bound;
                continue;
            }
            if (x == 0.0) above = at_lower;
            row[count++] = std::int32_t(source);
        }
        kind[j] = above ? Held::free_above : Held::free_below;
    }
    if (count + q.active_count > n) return false;
    for (Index k = 0; k < q.active_count; ++k) row[count++] = std::int32_t(q.active[k]);
    std::fill(row.begin() + count, row.end(), kNoRow);
    return true;
}

bool Pieces::keeps_vertex(const Products& products, Index p, double weight) {
    return std::max(weight, kLeastWeight) <= products.limit[p] * (1.0 - kWithinLimit);
}

bool Pieces::compute(Products& products, Index p, double weight) {
    Quadratic& q = program_;
    const Index n = q.n;
    const double t = std::max(weight, kLeastWeight);
    enforce_product(nearest_, products.state[p]);
    for (Index j = 0; j < n; ++j) {
        q.curvature[j] = j < Index(weights_.size()) ? 2.0 * t * eps_ / (weights_[j] * weights_[j]) : t * eps_;
    }
    q.restart();
    if (q.minimise(kInfinity) != Quadratic::Outcome::optimal || !read(products, p)) return false;
    double distance = 0.0, square = 0.0;
    for (Index j = 0; j < n; ++j) {
        distance += q.kinked[j] ? std::abs(q.x[j]) : 0.0;
        square += q.curvature[j] * q.x[j] * q.x[j];
    }
    const double price = distance + products.paid[p] + square + eps_ * t;
    // The direction in which the copy grows is the least that meets what holds it.
    for (Index j = 0; j < n; ++j) {
        if (q.state[j] == Quadratic::Column::free) q.x[j] = 0.0;
    }
    for (int round = 0; round < 2; ++round) q.correct();
    double slope = eps_;
    for (Index j = 0; j < n; ++j) slope += q.curvature[j] / t * q.x[j] * q.x[j];
    products.limit[p] = 0.0;  // its vertex is overwritten
    products.slope[p] = slope;
    products.intercept[p] = price - slope * t;
    computed_[p] = weight;
    share_[p] = weight * (distance + products.paid[p] + 0.5 * square * weight / t + 0.5 * eps_ * weight);
    return true;
}

bool Pieces::settle(const Given& given, Index s, Vector<const double> nearest, Products& products, Watch& watch) {
    weights_ = given.weights;
    nearest_ = nearest;
    eps_ = given.eps;
    units_.load(program_, component_.rows, given.varying[s], given.bound[s], given.yhat[s], weights_, zero_, 1.0);
    const Index count = products.count;
    before_.assign(std::size_t(count), 0.0);
    target_.resize(std::size_t(count));
    computed_.assign(std::size_t(count), -1.0);
    share_.resize(std::size_t(count));
    // What the last program took is counted when the next one begins.
    const auto cost = [&] {
        return long(program_.n * (program_.n + program_.m)) + std::exchange(program_.effort, 0);
    };
    double best = kInfinity;
    for (int round = 0; round < kPieceRounds; ++round) {
        products.fill();
        double change = 0.0;
        for (Index p = 0; p < count; ++p) {
            target_[p] = products.weight[p];
            change = std::max(change, std::abs(products.weight[p] - before_[p]));
        }
        if (change <= kSameWeight && best < kInfinity) break;
        double value = 0.0;
        for (double step = 1.0;; step *= 0.5) {
            value = 0.0;
            for (Index p = 0; p < count; ++p) {
                const double weight = step < 1.0 ? before_[p] + step * (target_[p] - before_[p]) : target_[p];
                products.weight[p] = weight;
                if (keeps_vertex(products, p, weight)) {  // its line is known
                    value += weight * (products.intercept[p] + 0.5 * products.slope[p] * weight);
                    continue;
                }
                if (weight != computed_[p]) {  // of many products most have no weight, round after round
                    if (watch.over(cost()) || !compute(products, p, weight)) return false;
                }
                value += share_[p];
            }
            if (value <= best + kNoWorse * std::max(1.0, std::abs(best)) || step < kLeastStep) break;
        }
        best = value;
        for (Index p = 0; p < count; ++p) before_[p] = products.weight[p];
    }
    // The derivative wants pieces of one kind: those of degenerate vertices need not agree with the others.
    for (Index p = 0; p < count; ++p) {
        const double weight = products.weight[p];
        if (weight <= 0.0 || !keeps_vertex(products, p, weight)) continue;
        if (watch.over(cost()) || !compute(products, p, weight)) return false;
    }
    return true;
}

}  // namespace gdpnet::band
