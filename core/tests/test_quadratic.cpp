#include "check.hpp"

#include <random>

#include "gdpnet/quadratic.hpp"
#include "gdpnet/units.hpp"

using namespace gdpnet;

namespace {

using Column = Quadratic::Column;
using Outcome = Quadratic::Outcome;

// Dense rows `a x <= b` over a box.
Rows rows_of(const std::vector<std::vector<double>>& a, Index n, Index outputs, const Flags& equality) {
    Rows rows;
    rows.outputs = outputs;
    rows.lower.assign(n, -10.0);
    rows.upper.assign(n, 10.0);
    rows.integer.assign(n, 0);
    rows.start = {0};
    for (const auto& row : a) {
        for (Index j = 0; j < n; ++j)
            if (row[j] != 0.0) rows.column.push_back(j), rows.coefficient.push_back(row[j]);
        rows.start.push_back(Index(rows.column.size()));
    }
    rows.equality = equality;
    rows.scale.assign(a.size(), 1.0);
    rows.largest.assign(a.size(), 1.0);
    return rows;
}

void fill(Quadratic& q, const Rows& rows, const std::vector<double>& b) {
    q.coefficient = rows.coefficient;
    q.rhs = b;
    q.tolerance.assign(b.size(), 1e-12);
    q.forgiven.assign(b.size(), 1e-10);
    q.lower = rows.lower;
    q.upper = rows.upper;
    for (Index i = 0; i < q.m; ++i) q.enforce(i);
}

}  // namespace

TEST("a projection without kinks satisfies its optimality conditions") {
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    int solved = 0;
    for (int trial = 0; trial < 300; ++trial) {
        const Index n = 1 + trial % 6, m = 1 + trial % 7;
        std::vector<std::vector<double>> a(m, std::vector<double>(n));
        std::vector<double> b(m);
        for (auto& row : a)
            for (double& value : row) value = normal(random);
        for (double& value : b) value = 0.5 * normal(random);
        Flags equality(m, 0);
        if (trial % 3 == 0) equality[0] = 1;
        const Rows rows = rows_of(a, n, 0, equality);
        Quadratic q(rows);
        fill(q, rows, b);
        q.price = 0.0;
        std::fill(q.curvature.begin(), q.curvature.end(), 1.0);
        for (double& value : q.centre) value = normal(random);
        for (Index j = 0; j < n; ++j) q.lower[j] = -1.0, q.upper[j] = 1.5;
        q.restart();
        const auto outcome = q.minimise(kInfinity);
        if (outcome != Outcome::optimal) {
            CHECK(outcome == Outcome::infeasible);
            continue;
        }
        ++solved;
        q.refine();
        for (Index i = 0; i < m; ++i) CHECK((equality[i] ? std::abs(q.excess(i)) : q.excess(i)) <= 1e-9);
        for (Index k = 0; k < q.active_count; ++k) CHECK(equality[q.active[k]] || q.multiplier[k] >= -1e-9);
        for (Index j = 0; j < n; ++j) {
            double slope = q.x[j] - q.centre[j];
            for (Index k = 0; k < q.active_count; ++k) slope += q.multiplier[k] * q.orientation[k] * a[q.active[k]][j];
            CHECK(q.x[j] >= -1.0 - 1e-12 && q.x[j] <= 1.5 + 1e-12);
            if (q.state[j] == Column::free) CHECK_NEAR(slope, 0.0, 1e-8);
            if (q.state[j] == Column::lower) CHECK(slope >= -1e-8);
            if (q.state[j] == Column::upper) CHECK(slope <= 1e-8);
        }
    }
    CHECK(solved > 150);
}

TEST("with a price the least-norm point of the l1-nearest ones is found") {
    // x0 + x1 + x2 >= 1: every share is equally near in l1; of least norm are thirds.
    const Rows rows = rows_of({{-1.0, -1.0, -1.0}}, 3, 3, {0});
    Quadratic q(rows);
    fill(q, rows, {-1.0});
    q.price = 1e4;
    q.restart();
    CHECK(q.minimise(kInfinity) == Outcome::optimal);
    q.refine();
    for (double value : q.x) CHECK_NEAR(value, 1.0 / 3.0, 1e-15);
    CHECK_NEAR(q.bound_value(), 1e4 + 0.5 / 3.0, 1e-9);
    q.restart();
    CHECK(q.minimise(10.0) == Outcome::cutoff);
}

TEST("a bound holds a column, and the others take its share") {
    const Rows rows = rows_of({{-1.0, -1.0, -1.0}}, 3, 3, {0});
    Quadratic q(rows);
    fill(q, rows, {-1.0});
    q.upper[1] = 0.1;
    q.price = 1e4;
    q.restart();
    CHECK(q.minimise(kInfinity) == Outcome::optimal);
    q.refine();
    CHECK_NEAR(q.x[0], 0.45, 1e-15);
    CHECK(q.x[1] == 0.1 && q.state[1] == Column::upper);
}

TEST("rows that contradict each other, and a row said twice") {
    Rows rows = rows_of({{1.0, 1.0}, {-1.0, -1.0}}, 2, 2, {0, 0});
    Quadratic q(rows);
    fill(q, rows, {-1.0, 0.5});
    q.price = 1.0;
    q.restart();
    CHECK(q.minimise(kInfinity) == Outcome::infeasible);
    rows = rows_of({{1.0, 1.0}, {1.0, 1.0}}, 2, 2, {1, 1});
    Quadratic twice(rows);
    fill(twice, rows, {1.0, 1.0 + 1e-11});
    twice.price = 1.0;
    twice.restart();
    CHECK(twice.minimise(kInfinity) == Outcome::optimal);
}
