#include "gdpnet/band/backward.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet::band {

struct Adjoint::Piece {
    double slope, weight;
    const double* point;
    const Held* kind;
    const std::int32_t* row;

    Piece(const Band& band, Index p)
        : slope(band.slope[p]),
          weight(band.weight[p]),
          point(band.point.data() + p * band.columns),
          kind(band.kind.data() + p * band.columns),
          row(band.row.data() + p * band.columns) {}
};

Adjoint::Adjoint(const Rows& rows)
    : rows_(rows),
      matrix_(2 * rows.columns(), 2 * rows.columns()),
      right_(2 * rows.columns(), 3),
      dense_(rows.columns(), rows.columns()),
      unit_(rows.lower.size()),
      free_(rows.lower.size()),
      sign_(rows.lower.size()),
      grow_(rows.lower.size()),
      point_(rows.lower.size()),
      adjoint_(rows.lower.size()) {}

// Solves `matrix x = right` in place, for some right sides, with row exchanges.
void Adjoint::eliminate(Index size, Index sides) {
    const Matrix<double> matrix = matrix_, right = right_;
    for (Index k = 0; k < size; ++k) {
        Index best = k;
        for (Index i = k + 1; i < size; ++i) {
            if (std::abs(matrix(i, k)) > std::abs(matrix(best, k))) best = i;
        }
        if (best != k) {
            for (Index c = k; c < size; ++c) std::swap(matrix(k, c), matrix(best, c));
            for (Index c = 0; c < sides; ++c) std::swap(right(k, c), right(best, c));
        }
        if (std::abs(matrix(k, k)) <= kSingular) {
            matrix(k, k) = 0.0;
            continue;
        }
        for (Index i = k + 1; i < size; ++i) {
            const double factor = matrix(i, k) / matrix(k, k);
            if (factor == 0.0) continue;
            for (Index c = k; c < size; ++c) matrix(i, c) -= factor * matrix(k, c);
            for (Index c = 0; c < sides; ++c) right(i, c) -= factor * right(k, c);
        }
    }
    for (Index k = size - 1; k >= 0; --k) {
        for (Index c = 0; c < sides; ++c) {
            double total = right(k, c);
            for (Index i = k + 1; i < size; ++i) total -= matrix(k, i) * right(i, c);
            right(k, c) = matrix(k, k) == 0.0 ? 0.0 : total / matrix(k, k);
        }
    }
}

// Writes the tight rows of a product, scaled; returns their number.
Index Adjoint::read_rows(const Piece& piece, Matrix<const double> varying) {
    const Index n = rows_.columns();
    Index count = 0;
    for (; count < n && piece.row[count] != kNoRow; ++count) {
        const Index i = piece.row[count];
        const Index v = rows_.place[i];
        const auto line = dense_[count];
        double& unit = unit_[count];
        if (v < 0) {
            std::ranges::fill(line, 0.0);
            for (Index e = rows_.start[i]; e < rows_.start[i + 1]; ++e) {
                line[rows_.column[e]] = rows_.coefficient[e];
            }
            unit = rows_.scale[i];
            continue;
        }
        double largest = 0.0;
        for (Index j = 0; j < n; ++j) largest = std::max(largest, std::abs(varying(v, j)));
        unit = largest > 0.0 ? 1.0 / largest : 1.0;
        for (Index j = 0; j < n; ++j) line[j] = varying(v, j) * unit;
    }
    return count;
}

// Writes free columns and signs of a product; returns the number of free columns.
Index Adjoint::read_columns(const Piece& piece, Vector<const double> weights) {
    Index frees = 0;
    for (std::size_t j = 0; j < sign_.size(); ++j) {
        const Held kind = piece.kind[j];
        sign_[j] = 0.0;
        if (j < weights.size()) {
            const bool below = kind == Held::free_below || (kind == Held::at_bound && piece.point[j] < 0.0);
            sign_[j] = below ? -weights[j] : weights[j];
        }
        if (kind != Held::at_kink && kind != Held::at_bound) free_[frees++] = Index(j);
    }
    return frees;
}

// Solves the equations of a product for three right sides: free columns first, then rows. `grow` is
// the direction of growth over all columns.
void Adjoint::solve_piece(const Piece& piece, double eps, const Pull& pull, Index rows, Index frees) {
    const Index n = rows_.columns(), outputs = Index(pull.yhat.size());
    const Matrix<double> matrix = matrix_, right = right_, dense = dense_;
    for (Index j = 0; j < n; ++j) {
        grow_[j] = piece.kind[j] == Held::at_bound ? piece.point[j] : 0.0;
    }
    const Index total = frees + rows;
    for (Index k = 0; k < total; ++k) {
        for (Index c = 0; c < total; ++c) matrix(k, c) = 0.0;
        for (Index c = 0; c < 3; ++c) right(k, c) = 0.0;
    }
    for (Index f = 0; f < frees; ++f) {
        const Index j = free_[f];
        matrix(f, f) = j < outputs ? 2.0 : 1.0;  // without eps, which scales the solutions
        right(f, 0) = j < outputs ? -pull.gradient[j] : 0.0;
        right(f, 1) = -sign_[j];
    }
    for (Index r = 0; r < rows; ++r) {
        double rest = pull.bound[piece.row[r]] * unit_[r];
        for (Index j = 0; j < outputs; ++j) rest -= dense(r, j) * pull.yhat[j];
        for (Index j = 0; j < n; ++j) rest -= dense(r, j) * grow_[j];
        right(frees + r, 2) = rest;
        for (Index f = 0; f < frees; ++f) {
            matrix(f, frees + r) = dense(r, free_[f]);
            matrix(frees + r, f) = dense(r, free_[f]);
        }
    }
    eliminate(total, 3);
    for (Index f = 0; f < frees; ++f) {
        right(f, 0) /= eps;
        right(f, 1) /= eps;
        grow_[free_[f]] = right(f, 2);
    }
    for (Index r = frees; r < total; ++r) right(r, 2) *= eps;
}

// Adds what a product with as many rows as free columns contributes.
void Adjoint::add_vertex(const Piece& piece, double eps, double pi, const Pull& pull, Index rows) {
    const Index n = rows_.columns(), outputs = Index(pull.yhat.size());
    const Matrix<double> matrix = matrix_, right = right_, dense = dense_;
    const double weight = piece.weight;
    for (Index j = 0; j < n; ++j) {  // minus the right side of the stationarity, for tau
        double& adjoint = adjoint_[j];
        adjoint = 2.0 * eps * weight * pi * piece.point[j];
        if (j < outputs) {
            adjoint = 2.0 * adjoint + pi * sign_[j] + weight * pull.gradient[j];
            if (piece.kind[j] != Held::at_kink) pull.to_yhat[j] -= adjoint;
        }
    }
    for (Index f = 0; f < rows; ++f) {
        const Index j = free_[f];
        right(f, 0) = -adjoint_[j];
        for (Index r = 0; r < rows; ++r) matrix(f, r) = dense(r, j);
    }
    eliminate(rows, 1);
    for (Index r = 0; r < rows; ++r) {
        const Index i = piece.row[r];
        const double tau = right(r, 0);
        const double scaled = tau * unit_[r];
        pull.to_bound[i] -= scaled;
        for (Index j = 0; j < outputs; ++j) {
            if (piece.kind[j] == Held::at_kink) pull.to_yhat[j] += tau * dense(r, j);
        }
        const Index v = rows_.place[i];
        if (v < 0) continue;
        for (Index j = 0; j < n; ++j) {
            const double here = piece.point[j] + (j < outputs ? pull.yhat[j] : 0.0);
            pull.to_varying(v, j) += scaled * here;
        }
    }
}

// Adds what any product contributes; its equations have been solved.
void Adjoint::add_piece(const Piece& piece, double eps, double pi, const Pull& pull, Index rows, Index frees) {
    const Index n = rows_.columns(), outputs = Index(pull.yhat.size());
    const Matrix<double> right = right_, dense = dense_;
    const double weight = piece.weight;
    for (Index j = 0; j < n; ++j) {
        point_[j] = weight * piece.point[j];
        adjoint_[j] = pi * grow_[j];
    }
    for (Index f = 0; f < frees; ++f) adjoint_[free_[f]] += right(f, 0);
    for (std::size_t j = 0; j < std::size_t(outputs); ++j) {
        if (piece.kind[j] == Held::at_kink) continue;
        pull.to_yhat[j] -= pi * (2.0 * eps * point_[j] + sign_[j]);
        pull.to_yhat[j] -= weight * (2.0 * eps * adjoint_[j] + pull.gradient[j]);
    }
    for (Index r = 0; r < rows; ++r) {
        const Index i = piece.row[r];
        const double unit = unit_[r];
        const double nu = (right(frees + r, 1) + weight * right(frees + r, 2)) * unit;
        const double q = (right(frees + r, 0) + pi * right(frees + r, 2)) * unit;
        const double tau = pi * nu + weight * q;
        pull.to_bound[i] -= tau;
        for (Index j = 0; j < outputs; ++j) {
            if (piece.kind[j] == Held::at_kink) pull.to_yhat[j] += tau * dense(r, j) / unit;
        }
        const Index v = rows_.place[i];
        if (v < 0) continue;
        for (Index j = 0; j < n; ++j) {
            const double shift = j < outputs ? pull.yhat[j] : 0.0;
            pull.to_varying(v, j) += nu * (adjoint_[j] + pi * shift);
            pull.to_varying(v, j) += q * (point_[j] + weight * shift);
        }
    }
}

void Adjoint::sample(const Band& band, Index s, Vector<const double> weights, double eps, const Pull& pull) {
    const Index first = band.start[s], last = band.start[s + 1];
    const bool joined = last - first > 1;  // pi = (m - rate) / slope needs all rates; with one it is 0
    double above = 0.0, below = 1.0;
    if (joined) {
        below = 0.0;
        rate_.resize(std::max(rate_.size(), std::size_t(last - first)));
        for (Index p = first; p < last; ++p) {
            const Piece piece(band, p);
            const Index frees = read_columns(piece, weights);
            Index rows = 0;
            while (rows < frees && piece.row[rows] != kNoRow) ++rows;
            const double* along = piece.point;
            if (rows < frees) {
                read_rows(piece, pull.varying);
                solve_piece(piece, eps, pull, rows, frees);
                along = grow_.data();
            }
            double total = 0.0;
            for (std::size_t j = 0; j < pull.yhat.size(); ++j) total += pull.gradient[j] * along[j];
            rate_[p - first] = total;
            above += total / piece.slope;
            below += 1.0 / piece.slope;
        }
    }
    for (Index p = first; p < last; ++p) {
        const Piece piece(band, p);
        const double pi = joined ? (above / below - rate_[p - first]) / piece.slope : 0.0;
        for (Index q = 0; q < band.priced; ++q)
            if (band.pays[std::size_t(p * band.priced + q)]) pull.to_price[q] += pi;
        const Index frees = read_columns(piece, weights);
        const Index rows = read_rows(piece, pull.varying);
        if (rows == frees) {
            add_vertex(piece, eps, pi, pull, rows);
        } else {
            solve_piece(piece, eps, pull, rows, frees);
            add_piece(piece, eps, pi, pull, rows, frees);
        }
    }
}

}  // namespace gdpnet::band
