#include "gdpnet/polish.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gdpnet {

Polish::Polish(const Rows& rows) {
    if (rows.curves.none()) return;
    const Index n = rows.columns(), lines = 2 * n + 2 + rows.curves.count();
    for (auto* values : {&x, &curvature, &centre, &cost, &origin, &z_, &start_}) values->assign(n, 0.0);
    unit.assign(n, 1.0);
    free_.assign(n, 0);
    position_.assign(n, -1);
    lines_ = Table<double>(lines, n);
    right_.assign(lines, 0.0);
    value_.assign(rows.curves.row.size(), 0.0);
    place_.assign(rows.curves.row.size(), 0);
    multiplier_.assign(lines, 0.0);
    factor_.assign(lines, 0.0);
    matrix_ = Table<double>(lines + n + 1, lines + n + 2);
    solution_.assign(lines + n + 1, 0.0);
}

void Polish::clear() {
    free_count_ = row_count_ = line_count_ = 0;
    level = false;
    height_ = 0.0;
    std::fill(position_.begin(), position_.end(), Index(-1));
}

Vector<double> Polish::add_row(double right) {
    right_[row_count_] = right;
    ++line_count_;
    return lines_[row_count_++];
}

void Polish::add_curved(Index c, double multiplier) {
    place_[line_count_ - row_count_] = c;
    multiplier_[line_count_++] = multiplier;
}

// Values and gradients of the curved rows at x. False where one has none.
bool Polish::evaluate(const Sample& sample, CurvedRows& curved) {
    for (std::size_t j = 0; j < x.size(); ++j) z_[j] = origin[j] + unit[j] * x[j];
    for (Index k = 0; k < line_count_ - row_count_; ++k) {
        if (!curved.smooth(sample, place_[k], z_.data())) return false;
        const Vector<double> line = lines_[row_count_ + k];
        value_[k] = curved.gradient(sample, place_[k], z_.data(), line);
        if (!std::isfinite(value_[k])) return false;
        for (std::size_t j = 0; j < line.size(); ++j) line[j] *= unit[j];
    }
    return true;
}

// Gaussian elimination with row exchanges; the solution is in `solution_`.
bool Polish::solve(Index size) {
    for (Index k = 0; k < size; ++k) {
        Index best = k;
        for (Index i = k + 1; i < size; ++i)
            if (std::abs(matrix_(i, k)) > std::abs(matrix_(best, k))) best = i;
        if (!(std::abs(matrix_(best, k)) > kNoPivotOfNewton)) return false;
        double* chosen = &matrix_(k, 0);
        if (best != k) std::swap_ranges(chosen + k, chosen + size + 1, &matrix_(best, 0) + k);
        const double inverse = 1.0 / chosen[k];
        for (Index i = k + 1; i < size; ++i) {
            double* line = &matrix_(i, 0);
            const double factor = line[k] * inverse;
            if (factor == 0.0) continue;
            for (Index c = k + 1; c <= size; ++c) line[c] -= factor * chosen[c];
        }
    }
    for (Index k = size - 1; k >= 0; --k) {
        const double* line = &matrix_(k, 0);
        double total = line[size];
        for (Index c = k + 1; c < size; ++c) total -= line[c] * solution_[c];
        solution_[k] = total / line[k];
    }
    return true;
}

// One step from x. The right side stands in the last column.
bool Polish::step(const Sample& sample, CurvedRows& curved) {
    const Index f = free_count_, last = f + line_count_, size = last + (level ? 1 : 0);
    for (Index i = 0; i < size; ++i) std::fill_n(&matrix_(i, 0), size + 1, 0.0);
    const Matrix<double> matrix = matrix_;
    for (Index k = 0; k < line_count_ - row_count_; ++k)
        curved.add_curvature(sample, place_[k], z_.data(), std::max(multiplier_[row_count_ + k], 0.0), position_, matrix);
    for (Index i = 0; i < f; ++i) {
        const Index j = free_[i];
        double* line = &matrix_(i, 0);
        for (Index c = 0; c < f; ++c) line[c] *= unit[j] * unit[free_[c]];
        line[i] += curvature[j];
        line[size] = -(curvature[j] * (x[j] - centre[j]) + cost[j]);
    }
    for (Index k = 0; k < line_count_; ++k) {
        const Vector<double> line = lines_[k];
        double largest = level && k >= row_count_ ? 1.0 : 0.0;  // a level row also has s
        for (Index i = 0; i < f; ++i) largest = std::max(largest, std::abs(line[free_[i]]));
        if (!(largest > 0.0)) return false;
        const double factor = 1.0 / largest;
        for (Index i = 0; i < f; ++i) matrix_(i, f + k) = matrix_(f + k, i) = line[free_[i]] * factor;
        double rest;
        if (k < row_count_) {
            rest = right_[k];
            for (std::size_t j = 0; j < x.size(); ++j) rest -= line[j] * x[j];
        } else {
            rest = -value_[k - row_count_];
        }
        matrix_(f + k, size) = rest * factor;
        if (level && k >= row_count_) matrix_(f + k, last) = matrix_(last, f + k) = -factor;
        factor_[k] = factor;
    }
    if (level) matrix_(last, size) = -1.0;
    return solve(size);
}

bool Polish::run(const Sample& sample, CurvedRows& curved) {
    if (!evaluate(sample, curved)) return false;
    bool last = false;
    double before = std::numeric_limits<double>::infinity();
    for (int round = 0; round < kNewtonSteps; ++round) {
        if (!step(sample, curved)) return false;
        double size = 1.0, move = 0.0;
        for (Index i = 0; i < free_count_; ++i) {
            size = std::max(size, std::abs(x[free_[i]]));
            move = std::max(move, std::abs(solution_[i]));
        }
        if (!(move < kFarthestStep * size)) return false;
        for (Index k = 0; k < line_count_; ++k) multiplier_[k] = solution_[free_count_ + k] * factor_[k];
        if (level) height_ = solution_[free_count_ + line_count_];
        std::copy(x.begin(), x.end(), start_.begin());
        double share = 1.0;
        while (true) {  // a step must not leave the domain
            for (Index i = 0; i < free_count_; ++i) x[free_[i]] = start_[free_[i]] + share * solution_[i];
            if (evaluate(sample, curved)) break;
            share *= 0.25;
            if (share < 1e-3) return false;
        }
        if (last && share == 1.0) return settled();
        last = share == 1.0 && move <= kNewtonStep * size;
        if (round > kNewtonSteps / 2 && move > before) return false;
        before = move;
    }
    return false;
}

// Whether the curved rows are what they are to be, but for rounding.
bool Polish::settled() {
    for (Index k = 0; k < line_count_ - row_count_; ++k) {
        const Vector<double> line = lines_[row_count_ + k];
        double terms = level ? 1.0 : 0.0;
        for (Index i = 0; i < free_count_; ++i) terms = std::max(terms, std::abs(line[free_[i]]));
        double size = 1.0;
        for (std::size_t j = 0; j < x.size(); ++j) size = std::max(size, std::abs(x[j]));
        if (!(std::abs(value_[k] - height_) <= kNewtonResidual * terms * size)) return false;
    }
    return true;
}

double Polish::slope(Index j) {
    double total = curvature[j] * (x[j] - centre[j]) + cost[j];
    for (Index k = 0; k < line_count_; ++k) total += multiplier_[k] * lines_(k, j);
    return total;
}

}  // namespace gdpnet
