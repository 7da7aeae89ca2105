#include "gdpnet.h"

#include <algorithm>
#include <cmath>

#include "gdpnet/exact.hpp"

namespace gdpnet {

namespace {

static_assert(GDPNET_NEAREST == int(Status::solved) && GDPNET_CONFLICT == int(Status::no_solution) &&
              GDPNET_LIMIT == int(Status::limited) && GDPNET_TROUBLE == int(Status::numerical) &&
              GDPNET_SATISFIED == int(Status::accepted));

// Whether `count` lists lie one after the other and lead to numbers below `most`, which is not asked where it is -1.
bool sound(const std::int64_t* start, std::int64_t count, const std::int64_t* listed, std::int64_t most) {
    if (start[0] != 0) return false;
    for (std::int64_t i = 0; i < count; ++i)
        if (start[i + 1] < start[i]) return false;
    for (std::int64_t e = 0; most >= 0 && e < start[count]; ++e)
        if (listed[e] < 0 || listed[e] >= most) return false;
    return true;
}

bool sound(const gdpnet_problem& given) {
    if (given.columns < 0 || given.outputs < 0 || given.outputs > given.columns || given.rows < 0) return false;
    if (given.global_count < 0 || given.disjunctions < 0) return false;
    const auto below = [&](std::int64_t i) { return i >= 0 && i < given.rows; };
    return sound(given.row_start, given.rows, given.column, given.columns) &&
           std::all_of(given.global_row, given.global_row + given.global_count, below) &&
           sound(given.disjunction_start, given.disjunctions, nullptr, -1) &&
           sound(given.disjunct_start, given.disjunction_start[given.disjunctions], given.disjunct_row, given.rows);
}

Rows rows_of(const gdpnet_problem& given) {
    const auto n = std::size_t(given.columns), m = std::size_t(given.rows);
    Rows rows;
    rows.outputs = given.outputs;
    rows.lower.assign(given.lower, given.lower + n);
    rows.upper.assign(given.upper, given.upper + n);
    rows.integer.assign(n, 0);
    if (given.integer != nullptr) rows.integer.assign(given.integer, given.integer + n);
    rows.start.assign(given.row_start, given.row_start + m + 1);
    rows.column.assign(given.column, given.column + rows.start[m]);
    rows.coefficient.assign(given.coefficient, given.coefficient + rows.start[m]);
    rows.equality.assign(given.equality, given.equality + m);
    rows.place.assign(m, -1);
    rows.global_rows.assign(given.global_row, given.global_row + given.global_count);
    rows.plain = given.outputs == given.columns;
    for (std::size_t i = 0; i < m; ++i) {
        double most = 0.0;
        for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) most = std::max(most, std::abs(rows.coefficient[e]));
        rows.largest.push_back(most);
        rows.scale.push_back(scale_of(most));
        for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) rows.coefficient[e] *= rows.scale[i];
    }
    return rows;
}

Logic logic_of(const gdpnet_problem& given) {
    const auto clauses = std::size_t(given.disjunctions);
    const auto disjuncts = std::size_t(given.disjunction_start[clauses]);
    Logic logic;
    logic.clause_start.assign(given.disjunction_start, given.disjunction_start + clauses + 1);
    for (std::size_t k = 0; k < disjuncts; ++k) logic.clause_literal.push_back(Index(k) + 1);
    logic.clause_guard.assign(clauses, -1);
    logic.true_start.assign(given.disjunct_start, given.disjunct_start + disjuncts + 1);
    logic.true_row.assign(given.disjunct_row, given.disjunct_row + logic.true_start[disjuncts]);
    logic.false_start.assign(disjuncts + 1, 0);
    logic.guarded_start.assign(disjuncts + 1, 0);
    logic.tied.assign(disjuncts, 0);
    return logic;
}

}  // namespace

}  // namespace gdpnet

int gdpnet_nearest(const gdpnet_problem* problem, const double* yhat, const double* weights, int64_t node_limit,
                   double* z, double* distance) {
    using namespace gdpnet;
    if (problem == nullptr || yhat == nullptr || z == nullptr || distance == nullptr || !sound(*problem)) return GDPNET_BAD_PROBLEM;
    const auto d = std::size_t(problem->outputs);
    const std::vector<double> ones(d, 1.0);
    const auto active = std::make_unique<bool[]>(std::size_t(problem->disjunctions));
    std::fill_n(active.get(), problem->disjunctions, true);
    Search search({rows_of(*problem), logic_of(*problem)});
    const Batch batch{{active.get(), 1, problem->disjunctions},
                      {nullptr, 1, 0, problem->columns},
                      {problem->bound, 1, problem->rows},
                      {yhat, 1, problem->outputs},
                      weights == nullptr ? Vector<const double>(ones) : Vector<const double>(weights, d)};
    double bound = 0.0;
    std::int8_t status = 0;
    Index nodes = 0;
    std::vector<Truth> assignment(std::size_t(search.component().logic.booleans()));
    const Answers answers{{z, 1, problem->columns}, {distance, 1}, {&bound, 1}, {&status, 1},
                          {assignment.data(), 1, Index(assignment.size())}, {&nodes, 1}};
    Call call;
    search.project(batch, {node_limit, kAccepted, 0.0}, answers, nullptr, {1, true}, call);
    return status;
}
