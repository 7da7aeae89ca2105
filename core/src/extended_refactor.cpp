#include <algorithm>
#include <cmath>

#include "gdpnet/extended/simplex.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet::extended {

namespace {

// Writes the tight rows, one a line: basic columns on the left, then minus the nonbasic quantities, then what
// the basic columns have to add up to.
void write_tight_rows(Dictionary& dic, const SparseRows& rows, Index width) {
    const Index n = dic.n, r = dic.basics;
    double* line = dic.factor.data();
    for (Index q = 0; q < n; ++q) {
        if (!is_row(dic.nonbasic[q])) continue;
        const Index i = row_of(dic.nonbasic[q]);
        std::fill(line, line + width, 0.0);
        double rest = rows.rhs[i];
        for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) {
            const Index j = rows.column[e], place = dic.place[j];
            const double a = rows.coefficient[e];
            if (place >= 0) {
                line[place] += a;
            } else {
                line[r - 1 - place] -= a;
                rest -= a * dic.value[j];
            }
        }
        line[r + q] = -1.0;
        line[r + n] = rest;
        line += width;
    }
}

// Gauss-Jordan elimination of the first r columns. False where they are dependent.
bool eliminate(double* work, Index r, Index width) {
    for (Index k = 0; k < r; ++k) {
        Index best = k;
        for (Index c = k + 1; c < r; ++c) {
            if (std::abs(work[c * width + k]) > std::abs(work[best * width + k])) best = c;
        }
        if (std::abs(work[best * width + k]) < kNoPivot) return false;
        double* own = work + k * width;
        if (best != k) std::swap_ranges(own, own + width, work + best * width);
        const double inverse = 1.0 / own[k];
        for (Index c = k; c < width; ++c) own[c] *= inverse;
        for (Index other = 0; other < r; ++other) {
            double* line = work + other * width;
            const double factor = line[k];
            if (other == k || factor == 0.0) continue;
            for (Index c = k; c < width; ++c) line[c] -= factor * own[c];
        }
    }
    return true;
}

}  // namespace

bool refactor(Dictionary& dic, const SparseRows& rows) {
    const Index n = dic.n, r = dic.basics, width = r + n + 1;
    dic.age = 0;
    write_tight_rows(dic, rows, width);
    if (!eliminate(dic.factor.data(), r, width)) return false;
    double* reduced = dic.reduced.data();
    std::fill(reduced, reduced + n, 0.0);
    for (Index k = 0; k < r; ++k) {
        const double* solved = dic.factor.data() + k * width;
        const Index j = dic.basic[k];
        dic.value[j] = solved[r + n];
        std::copy(solved + r, solved + r + n, dic.line(k));
        const double slope = dic.slope[j];
        for (Index p = 0; p < n; ++p) reduced[p] += slope * solved[r + p];
    }
    return true;
}

}  // namespace gdpnet::extended
