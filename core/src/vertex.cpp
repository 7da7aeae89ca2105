#include "gdpnet/vertex.hpp"

#include <cmath>
#include <numeric>

namespace gdpnet {

void solve_in_place(Matrix<double> matrix, Vector<double> right, Index size) {
    for (Index k = 0; k < size; ++k) {
        Index best = k;
        for (Index c = k + 1; c < size; ++c)
            if (std::abs(matrix(c, k)) > std::abs(matrix(best, k))) best = c;
        if (best != k) {
            for (Index c = k; c < size; ++c) std::swap(matrix(k, c), matrix(best, c));
            std::swap(right[k], right[best]);
        }
        for (Index other = k + 1; other < size; ++other) {
            const double factor = matrix(other, k) / matrix(k, k);
            if (factor == 0.0) continue;
            for (Index c = k; c < size; ++c) matrix(other, c) -= factor * matrix(k, c);
            right[other] -= factor * right[k];
        }
    }
    for (Index k = size - 1; k >= 0; --k) {
        double total = right[k];
        for (Index c = k + 1; c < size; ++c) total -= matrix(k, c) * right[c];
        right[k] = total / matrix(k, k);
    }
}

void solve_independent(Matrix<double> matrix, Vector<double> right, Index size, Index width, Vector<double> solution) {
    std::vector<Index> order(static_cast<std::size_t>(width));
    std::iota(order.begin(), order.end(), Index(0));
    for (Index k = 0; k < size; ++k) {
        Index best = k, across = k;
        for (Index i = k; i < size; ++i)
            for (Index c = k; c < width; ++c)
                if (std::abs(matrix(i, c)) > std::abs(matrix(best, across))) best = i, across = c;
        for (Index c = k; c < width; ++c) std::swap(matrix(k, c), matrix(best, c));
        std::swap(right[k], right[best]);
        for (Index i = 0; i < size; ++i) std::swap(matrix(i, k), matrix(i, across));
        std::swap(order[k], order[across]);
        for (Index i = k + 1; i < size; ++i) {
            const double factor = matrix(i, k) / matrix(k, k);
            if (factor == 0.0) continue;
            for (Index c = k; c < width; ++c) matrix(i, c) -= factor * matrix(k, c);
            right[i] -= factor * right[k];
        }
    }
    std::fill_n(solution.begin(), width, 0.0);
    for (Index k = size - 1; k >= 0; --k) {
        double total = right[k];
        for (Index c = k + 1; c < size; ++c) total -= matrix(k, c) * solution[order[c]];
        solution[order[k]] = total / matrix(k, k);
    }
}

namespace {

// One sample at a time, with memory for all of them.
class VertexPullback {
public:
    VertexPullback(const Rows& rows, Tensor<const double> varying, const Dictionaries& dictionaries,
                   Matrix<const double> z, const Pullback& to)
        : rows_(rows),
          varying_(varying),
          dictionaries_(dictionaries),
          z_(z),
          to_(to),
          n_(rows.columns()),
          matrix_(n_, n_),
          right_(std::size_t(n_)),
          price_(std::size_t(n_)),
          unit_(std::size_t(n_)),
          row_(std::size_t(n_)),
          basic_(std::size_t(n_)) {}

    void operator()(Index s) {
        const Vector<double> gradient = to_.gradient[s];
        Index count = 0;  // continuous columns that the tight rows determine
        Index tight = 0;
        for (Index j = 0; j < n_; ++j) {
            if (rows_.integer[j]) gradient[j] = 0.0;
            if (state(s, j) != ColumnState::determined) continue;
            ++tight;
            if (rows_.integer[j]) continue;
            basic_[count] = j;
            right_[count++] = gradient[j];
        }
        price_rows(s, count, tight);
        for (Index k = 0; k < count; ++k) gradient[basic_[k]] = 0.0;
        for (Index t = 0; t < tight; ++t)
            if (price_[t] != 0.0) charge_row(s, dictionaries_.tight_rows(s, t), price_[t] * unit_[t]);
        for (Index j = 0; j < n_; ++j)
            if (!rows_.integer[j]) charge_column(s, j);
    }

private:
    ColumnState state(Index s, Index j) const { return ColumnState(dictionaries_.column_state(s, j)); }

    // The transposed system: one column of it a tight row, scaled to a largest entry of 1.
    void price_rows(Index s, Index count, Index tight) {
        for (Index t = 0; t < tight; ++t) {
            read_row(s, dictionaries_.tight_rows(s, t));
            double largest = 0.0;
            for (Index k = 0; k < count; ++k) largest = std::max(largest, std::abs(row_[basic_[k]]));
            unit_[t] = largest > 0.0 ? 1.0 / largest : 1.0;
            for (Index k = 0; k < count; ++k) matrix_(k, t) = row_[basic_[k]] * unit_[t];
        }
        if (tight == count) {
            solve_in_place(matrix_, right_, count);
            std::copy_n(right_.begin(), count, price_.begin());
        } else {
            solve_independent(matrix_, right_, count, tight, price_);
        }
    }

    void charge_row(Index s, Index i, double rate) {
        read_row(s, i);
        for (Index j = 0; j < n_; ++j)
            if (state(s, j) != ColumnState::determined) to_.gradient(s, j) -= rate * row_[j];
        if (to_.bound.lines == 0) return;
        to_.bound(s, i) += rate;
        if (rows_.place[i] < 0) return;
        const Matrix<double> coefficients = to_.varying[s];
        for (Index j = 0; j < n_; ++j) coefficients(rows_.place[i], j) -= rate * z_(s, j);
    }

    void charge_column(Index s, Index j) {
        const double gradient = to_.gradient(s, j);
        const ColumnState at = state(s, j);
        if (at == ColumnState::follows && j < to_.yhat.width) {
            to_.yhat(s, j) = gradient;
        } else if (to_.bound.lines == 0) {
            return;
        } else if (at == ColumnState::at_lower || at == ColumnState::at_upper) {
            const Index i = dictionaries_.column_source(s, j);
            if (i < 0) return;
            read_row(s, i);  // a row with one entry: z = b / a
            to_.bound(s, i) += gradient / row_[j];
            if (rows_.place[i] >= 0) to_.varying[s](rows_.place[i], j) -= gradient * z_(s, j) / row_[j];
        }
    }

    // Coefficients of a row in the user's units, dense.
    void read_row(Index s, Index i) {
        if (rows_.place[i] >= 0) {
            const auto line = varying_[s][rows_.place[i]];
            std::copy(line.begin(), line.end(), row_.begin());
            return;
        }
        std::fill(row_.begin(), row_.end(), 0.0);
        for (Index e = rows_.start[i]; e < rows_.start[i + 1]; ++e)
            row_[rows_.column[e]] = rows_.coefficient[e] / rows_.scale[i];
    }

    const Rows& rows_;
    Tensor<const double> varying_;
    const Dictionaries& dictionaries_;
    Matrix<const double> z_;
    const Pullback& to_;
    Index n_;
    Table<double> matrix_;
    std::vector<double> right_, price_, unit_, row_;
    std::vector<Index> basic_;
};

}  // namespace

void pull_back_vertex(const Rows& rows, Tensor<const double> varying, const Dictionaries& dictionaries,
                      Matrix<const double> z, const Pullback& to) {
    VertexPullback one(rows, varying, dictionaries, z, to);
    for (Index s = 0; s < z.lines; ++s) one(s);
}

}  // namespace gdpnet
