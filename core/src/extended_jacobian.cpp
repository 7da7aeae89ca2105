#include "gdpnet/extended/jacobian.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gdpnet::extended {

namespace {

// Gaussian elimination with row exchanges; the solution replaces `right`.
void solve_in_place(double* matrix, double* right, Index size) {
    const auto line = [&](Index k) { return matrix + k * size; };
    for (Index k = 0; k < size; ++k) {
        Index best = k;
        for (Index c = k + 1; c < size; ++c) {
            if (std::abs(line(c)[k]) > std::abs(line(best)[k])) best = c;
        }
        double* own = line(k);
        if (best != k) {
            std::swap_ranges(own + k, own + size, line(best) + k);
            std::swap(right[k], right[best]);
        }
        for (Index other = k + 1; other < size; ++other) {
            double* lower = line(other);
            const double factor = lower[k] / own[k];
            if (factor == 0.0) continue;
            for (Index c = k; c < size; ++c) lower[c] -= factor * own[c];
            right[other] -= factor * right[k];
        }
    }
    for (Index k = size - 1; k >= 0; --k) {
        double total = right[k];
        for (Index c = k + 1; c < size; ++c) total -= line(k)[c] * right[c];
        right[k] = total / line(k)[k];
    }
}

// Brings back which products the final program has.
void restore(const Part& part, Workspace& work, const PartBasis& basis) {
    for (Index b = 0; b < part.blocks; ++b) {
        const Span span = part.products(b);
        work.rank[std::size_t(b)] = basis.rank[b];
        for (Index k = span.begin; k < span.end; ++k) work.state[std::size_t(k)] = State(basis.state[k]);
    }
}

// Reads the copy of a product, measured from the prediction. Returns its weight.
double copy_of(const Part& part, const Workspace& work, Index product, const double* x, double* copy) {
    const Index n = part.n, d = part.d, base = part.base();
    const auto moved = [&](Index first, Index j) {
        return j >= d ? x[first + d + j] : x[first + j] - x[first + d + j];
    };
    const auto k = std::size_t(product);
    const Index own = work.state[k] == State::present ? work.first[k] : 0;
    for (Index j = 0; j < n; ++j) copy[j] = moved(own, j);
    if (work.state[k] == State::present) return x[own + base];
    double rest = 1.0;
    for (Index b = 0; b < part.blocks; ++b) {
        const Span span = part.products(b);
        if (product < span.begin || product >= span.end) continue;
        for (Index other = span.begin; other < span.end; ++other) {
            if (work.state[std::size_t(other)] != State::present) continue;
            const Index first = work.first[std::size_t(other)];
            rest -= x[first + base];
            for (Index j = 0; j < n; ++j) copy[j] -= moved(first, j);
        }
    }
    return rest;
}

}  // namespace

void vjp_part(const Sources& sources, const Part& part, Workspace& work, const PartBasis& basis,
              Vector<const double> gradient, const SampleGradients& found) {
    const Index n = part.n, d = part.d, size = basis.size;
    restore(part, work, basis);
    const Index columns = write_program(part, work).columns;
    // The dictionary is at rest: its memory serves.
    double* x = work.dictionary.value.data();
    double* right = work.dictionary.alpha.data();
    double* copy = work.dictionary.reduced.data();
    double* matrix = work.dictionary.factor.data();
    Small* line = work.dictionary.place.data();
    std::fill(x, x + columns, 0.0);
    std::fill(line, line + columns, Small(-1));
    std::fill(matrix, matrix + size * size, 0.0);
    for (Index k = 0; k < size; ++k) {
        const Index j = basis.column[k];
        x[j] = basis.value[k];
        line[j] = Small(k);
        right[k] = 0.0;
        if (j < d) right[k] = gradient[std::size_t(part.column(j))];
        if (j >= d && j < 2 * d) right[k] = -gradient[std::size_t(part.column(j - d))];
    }
    const SparseRows& rows = work.lifted;
    for (Index t = 0; t < size; ++t) {
        const Index row = basis.row[t];
        for (Index e = rows.start[row]; e < rows.start[row + 1]; ++e) {
            const Index k = line[rows.column[e]];
            if (k >= 0) matrix[k * size + t] += rows.coefficient[e];
        }
    }
    solve_in_place(matrix, right, size);
    for (Index t = 0; t < size; ++t) {
        const double price = right[t];
        if (price == 0.0) continue;
        const Index row = basis.row[t], source = work.source[row];
        const double share = copy_of(part, work, work.owner[row], x, copy);
        if (source >= 0) {
            const auto i = std::size_t(part.row(source));
            const double factor = price * work.scale[std::size_t(source)];
            found.bound[i] += factor * share;
            for (Index e = work.local.start[source]; e < work.local.start[source + 1]; ++e) {
                const Index k = work.local.column[e], j = part.column(k);
                if (k < d) found.start[std::size_t(j)] -= price * share * work.local.coefficient[e];
                if (sources.varying[i] >= 0) {
                    const double moved = copy[k] + share * work.shift[std::size_t(k)];
                    found.varying(sources.varying[i], j) -= factor * moved;
                }
            }
        } else if (source >= -n) {  // an upper bound
            const Index k = -1 - source;
            if (k < d) found.start[std::size_t(part.column(k))] -= price * share;
        } else if (source >= -2 * n) {  // a lower bound
            found.start[std::size_t(part.column(-1 - n - source))] += price * share;
        }
    }
}

}  // namespace gdpnet::extended
