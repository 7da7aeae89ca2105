#include "gdpnet/gram.hpp"

namespace gdpnet {

Gram::Gram(const Rows& rows)
    : n(rows.columns()), m(rows.count()), width(in_fours(n)), rows_(rows), sums_(sums()), length_(in_fours(m + n)), height_(in_fours(m)) {
    const auto sides = std::size_t(m + n);
    normal_.assign(sides * std::size_t(width), 0.0);
    column_.assign(std::size_t(n * height_), 0.0);
    product_.assign(sides * std::size_t(length_), 0.0);
    square_.assign(sides, 1.0);
    factor_.resize(std::size_t(m));
    least_.resize(std::size_t(m));
    columns_.assign(sides, 0);
    made_.assign(sides, 0);
    for (Index j = 0; j < n; ++j) {
        normal_[(m + j) * width + j] = 1.0;
        columns_[m + j] = std::uint64_t(1) << (j & 63);
    }
}

bool Gram::load(const Sample& sample, Vector<const double> weights) {
    const bool same = std::equal(weights.begin(), weights.end(), weight_.begin(), weight_.end());
    if (same && rows_.varying.empty()) return false;
    ++now_;
    if (same) {
        for (Index i : rows_.varying) make_normal(sample, i);
        return true;
    }
    weight_.assign(weights.begin(), weights.end());
    for (Index i = 0; i < m; ++i) make_normal(sample, i);
    return true;
}

void Gram::make_normal(const Sample& sample, Index i) {
    double* normal = normal_.data() + i * width;
    const Sample::Row& row = sample.row[i];
    std::fill(normal, normal + n, 0.0);
    columns_[i] = 0;
    double least = 0.0;
    for (Slot e = row.first; e < row.last; ++e) {
        const auto [coefficient, j] = sample.entry[e];
        normal[j] += coefficient / weight_[j];
        if (coefficient == 0.0) continue;
        columns_[i] |= std::uint64_t(1) << (j & 63);
        least += coefficient * (coefficient > 0.0 ? rows_.lower : rows_.upper)[j];
    }
    const double factor = scale_of(std::sqrt(dot(normal, normal, width)));
    for (Index j = 0; j < n; ++j) column_[j * height_ + i] = normal[j] *= factor;
    factor_[i] = factor;
    least_[i] = factor * least;
    square_[i] = dot(normal, normal, width);
}

void Gram::excess(const double* at, const double* right, double* found) const {
    sums_.add_up(at, column_.data(), height_, n, found, m);
    for (Index i = 0; i < m; ++i) found[i] -= right[i];
}

void Gram::make_line(Index p) {
    double* line = product_.data() + p * length_;
    const double* own = normal(p);
    for (Index i = 0; i < m; ++i) line[i] = p < m ? dot(own, normal(i), width) : normal(i)[p - m];
    std::copy(own, own + n, line + m);
    made_[p] = now_;
}

}  // namespace gdpnet
