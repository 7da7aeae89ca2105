#include "gdpnet/sample.hpp"

#include <cstring>

namespace gdpnet {

Sample::Sample(const Rows& rows) : rows(rows), scale(rows.scale), largest(rows.largest) {
    for (Index i = 0; i < rows.count(); ++i)
        row.push_back({0.0, 0.0, Slot(rows.start[i]), Slot(rows.start[i + 1]), rows.equality[i] != 0});
    for (std::size_t e = 0; e < rows.column.size(); ++e) entry.push_back({rows.coefficient[e], Slot(rows.column[e])});
}

void Sample::load(Matrix<const double> varying, Vector<const double> bound) {
    accepted = kAccepted;
    if (!loaded_.empty() && std::memcmp(loaded_.data(), bound.data(), bound.size_bytes()) == 0) return;
    ++edition_;
    for (Index v = 0; v < Index(rows.varying.size()); ++v) {
        const Index i = rows.varying[v];
        double most = 0.0;
        for (Slot e = row[i].first; e < row[i].last; ++e) most = std::max(most, std::abs(varying(v, entry[e].column)));
        const double factor = scale_of(most);
        scale[i] = factor;
        largest[i] = most;
        for (Slot e = row[i].first; e < row[i].last; ++e) entry[e].coefficient = varying(v, entry[e].column) * factor;
    }
    for (std::size_t i = 0; i < bound.size(); ++i) {
        row[i].rhs = bound[i] * scale[i];
        row[i].tolerance = kFeasibility * std::max(1.0, std::abs(row[i].rhs));
    }
    for (Index i : rows.curves.row) unscale(i, bound[i]);
    if (rows.varying.empty() && rows.curves.none()) loaded_.assign(bound.begin(), bound.end());
}

// Curved rows are measured in the user's units: curves are not scaled.
void Sample::unscale(Index i, double bound) {
    for (Slot e = row[i].first; e < row[i].last; ++e) entry[e].coefficient /= scale[i];
    scale[i] = 1.0;
    row[i].rhs = bound;
    row[i].tolerance = kFeasibility * std::max({1.0, std::abs(bound), largest[i]});
}

void Sample::loosen_curves(double room) {
    for (Index i : rows.curves.row) row[i].rhs += room * std::max(1.0, size(i));
}

void Sample::refine() {
    ++edition_;
    loaded_.clear();
    accepted = kFineAccepted;
    for (Index i = 0; i < rows.count(); ++i)
        if (!rows.curved(i)) row[i].tolerance = kFineFeasibility * std::max(1.0, std::abs(row[i].rhs));
}

void Sample::allow_rounding(Vector<const double> yhat, double lost) {
    const Index outputs = Index(yhat.size());
    ++edition_;
    loaded_.clear();
    for (Row& at : row) {
        double size = 0.0;
        for (Slot e = at.first; e < at.last; ++e)
            if (entry[e].column < outputs) size += std::abs(entry[e].coefficient * yhat[entry[e].column]);
        at.tolerance = kFeasibility * std::max(1.0, std::abs(at.rhs)) + lost * size;
    }
}

}  // namespace gdpnet
