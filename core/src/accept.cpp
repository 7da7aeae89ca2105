#include "gdpnet/accept.hpp"

#include <cmath>

#include "gdpnet/curves.hpp"

namespace gdpnet {

namespace {

template <bool priced, class RowHolds>
bool accepts_by(RowHolds row_holds, const Assignment& assignment, Vector<const double> yhat, double tolerance,
                Vector<Truth> truth) {
    const Rows& rows = assignment.rows;
    const Logic& logic = assignment.logic;
    for (Index j = 0; j < Index(yhat.size()); ++j) {
        const double x = yhat[j], lower = rows.lower[j], upper = rows.upper[j];
        if (lower - x > tolerance * std::max(1.0, std::abs(lower))) return false;
        if (x - upper > tolerance * std::max(1.0, std::abs(upper))) return false;
        if (rows.integer[j] && x != std::nearbyint(x)) return false;
    }
    for (Index i : rows.global_rows)
        if (!row_holds(i)) return false;
    const auto some_disjunct_holds = [&](Index c, Truth* mark) {
        for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e)
            if ((!priced || assignment.prices.cost(e) == 0.0) && assignment.holds(logic.clause_literal[e] - 1, row_holds, mark))
                return true;
        return false;
    };
    const auto asked = [&](Index c) { return assignment.active[c] && logic.clause_guard[c] < 0; };
    for (Index c = 0; c < logic.clauses(); ++c)
        if (asked(c) && !some_disjunct_holds(c, nullptr)) return false;
    std::fill(truth.begin(), truth.end(), Truth(0));
    for (Index c = 0; c < logic.clauses(); ++c)
        if (asked(c)) some_disjunct_holds(c, truth.data());
    return true;
}

}  // namespace

bool accepts(const Sample& sample, const Assignment& assignment, Vector<const double> yhat, double tolerance,
             Vector<Truth> truth) {
    if (!sample.rows.curves.none())
        return accepts_by<true>([&](Index i) { return holds_within(sample, i, yhat.data(), tolerance); }, assignment, yhat,
                                tolerance, truth);
    const auto row_holds = [&](Index i) {
        return sample.violation(i, yhat.data()) <= tolerance * sample.size(i) * sample.scale[i];
    };
    return assignment.prices.any ? accepts_by<true>(row_holds, assignment, yhat, tolerance, truth)
                                 : accepts_by<false>(row_holds, assignment, yhat, tolerance, truth);
}

}  // namespace gdpnet
