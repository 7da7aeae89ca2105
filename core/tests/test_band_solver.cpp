// The regularised program of the DNF as a whole: known answers, differences, threads, limits.
#include <array>
#include <memory>
#include <random>

#include "check.hpp"
#include "gdpnet/band/solver.hpp"

using namespace gdpnet;
using namespace gdpnet::band;

namespace {

// Two outputs; `rows` lists a0, a1, b of rows a y <= b. Disjunct k enforces row k, rules are pairs of disjuncts.
struct Problem {
    Component component;
    std::vector<double> bound;
    Choices choices;

    explicit Problem(std::vector<std::array<double, 3>> listed) {
        Rows& rows = component.rows;
        Logic& logic = component.logic;
        rows.outputs = 2;
        rows.lower = {-5.0, -5.0};
        rows.upper = {5.0, 5.0};
        rows.integer = {0, 0};
        rows.start = {0};
        logic.true_start = logic.false_start = logic.guarded_start = logic.clause_start = {0};
        choices.clause_start = choices.option_start = {0};
        for (const auto& row : listed) {
            for (Index j = 0; j < 2; ++j) {
                if (row[j] == 0.0) continue;
                rows.column.push_back(j);
                rows.coefficient.push_back(row[j]);
            }
            rows.start.push_back(Index(rows.column.size()));
            rows.largest.push_back(1.0);
            rows.scale.push_back(1.0);
            rows.equality.push_back(0);
            rows.place.push_back(-1);
            bound.push_back(row[2]);
            const Index k = Index(bound.size());
            logic.true_row.push_back(k - 1);
            logic.true_start.push_back(k);
            logic.false_start.push_back(0);
            logic.guarded_start.push_back(0);
            logic.tied.push_back(0);
            logic.clause_literal.push_back(k);
            choices.literal.push_back(k);
            choices.option_start.push_back(k);
            if (k % 2 == 0) {
                logic.clause_start.push_back(k);
                logic.clause_guard.push_back(-1);
                choices.clause_start.push_back(k);
                choices.proposition.push_back(0);
            }
        }
    }
};

// Arrays of a batch. `nearest` need not be nearest: any point of the set only widens the band.
struct Samples {
    Index size;
    std::vector<double> bound, yhat, weights{1.0, 1.0}, nearest, y, value;
    std::vector<Index> products;
    std::vector<std::int8_t> status;
    std::vector<Truth> assignment;
    std::unique_ptr<bool[]> active, capped;
    Index rows, clauses;

    Samples(const Problem& problem, std::vector<double> points, std::array<double, 2> feasible)
        : size(Index(points.size()) / 2),
          yhat(points),
          y(points),
          value(size, 0.0),
          products(size, 0),
          status(size, 1),
          assignment(size * problem.component.logic.booleans(), 0),
          active(new bool[size * problem.component.logic.clauses()]),
          capped(new bool[size]),
          rows(problem.component.rows.count()),
          clauses(problem.component.logic.clauses()) {
        for (Index s = 0; s < size; ++s) {
            bound.insert(bound.end(), problem.bound.begin(), problem.bound.end());
            nearest.insert(nearest.end(), feasible.begin(), feasible.end());
            capped[s] = false;
        }
        for (Index c = 0; c < size * clauses; ++c) active[c] = true;
    }

    Given given(double eps) const {
        return {{nullptr, size, 0, 2}, {bound.data(), size, rows}, {yhat.data(), size, 2}, weights, eps};
    }

    Band solve(Solver& solver, double eps, Index cap = 64, Index threads = 1, double time_limit = 1e9) {
        Call call;
        call.time_limit = time_limit;
        const Projected projected{{active.get(), size, clauses}, {nearest.data(), size, 2},
                                  {assignment.data(), size, Index(assignment.size()) / size}};
        const Solution solution{status, {y.data(), size, 2}, value, products, {capped.get(), std::size_t(size)}};
        return solver.solve(given(eps), projected, cap, solution, {threads, threads > 1}, call);
    }
};

// Outside of a cross, with corners cut off: many products, tight rows of one and of two entries.
Problem crosses() {
    return Problem({{1, 0, -1}, {-1, 0, -1}, {0, 1, -1}, {0, -1, -1},
                    {1, 1, -0.5}, {-1, -1, -0.5}, {1, -1, -0.25}, {-1, 1, -0.5}});
}

std::vector<double> uniform(Index count, double size) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> draw(-size, size);
    std::vector<double> found(count);
    for (double& value : found) value = draw(random);
    return found;
}

}  // namespace

TEST("one rule: weights in closed form") {
    const Problem problem({{1, 0, -1}, {-1, 0, -1}});
    Solver solver(problem.component, problem.choices);
    Samples samples(problem, {0.1, 2.0}, {1.0, 2.0});
    const double eps = 0.3;
    samples.solve(solver, eps);
    // Prices 1.1 + eps t (1 + 2 1.1^2) and 0.9 + eps (1 - t) (1 + 2 0.9^2) are the same.
    const double left = eps * (1.0 + 2.0 * 1.21), right = eps * (1.0 + 2.0 * 0.81);
    const double t = (0.9 - 1.1 + right) / (left + right);
    CHECK(samples.products[0] == 2);
    CHECK_NEAR(samples.y[0], -t + (1.0 - t), 1e-12);
    CHECK_NEAR(samples.y[1], 2.0, 1e-12);
}

TEST("samples that passed are left out") {
    const Problem problem = crosses();
    Solver solver(problem.component, problem.choices);
    Samples samples(problem, {0.1, 2.0, 0.2, 0.3}, {-1.0, 2.0});
    samples.status[0] = 0;
    const Band band = samples.solve(solver, 0.1);
    CHECK(samples.y[0] == 0.1 && samples.products[0] == 0 && band.start[1] == 0);
    CHECK(samples.products[1] > 0 && band.start[2] == samples.products[1]);
}

TEST("threads change nothing, however many") {
    const Problem problem = crosses();
    Solver solver(problem.component, problem.choices);
    Samples one(problem, uniform(400, 1.5), {-1.5, 2.5}), many(problem, uniform(400, 1.5), {-1.5, 2.5});
    const Band first = one.solve(solver, 0.5), second = many.solve(solver, 0.5, 64, 3);
    CHECK(one.y == many.y);
    CHECK(one.value == many.value);
    CHECK(one.status == many.status);
    CHECK(first.start == second.start);
    CHECK(first.point == second.point);
    CHECK(first.row == second.row);
    bool pieces = false;
    for (const auto status : one.status) pieces = pieces || status == std::int8_t(Status::pieces);
    CHECK(pieces);  // or quadratic programs have not been looked at
}

TEST("the derivative is that of the solution") {
    const Problem problem = crosses();
    Solver solver(problem.component, problem.choices);
    const double eps = 0.5, h = 1e-6;
    const auto points = uniform(200, 1.5);
    Samples samples(problem, points, {-1.5, 2.5});
    const Band band = samples.solve(solver, eps);
    Index smooth = 0, wrong = 0;
    for (Index k = 0; k < 2; ++k) {
        auto forward = points, backward = points;
        for (Index s = 0; s < samples.size; ++s) {
            forward[2 * s + k] += h;
            backward[2 * s + k] -= h;
        }
        Samples up(problem, forward, {-1.5, 2.5}), down(problem, backward, {-1.5, 2.5});
        up.solve(solver, eps);
        down.solve(solver, eps);
        for (Index j = 0; j < 2; ++j) {
            std::vector<double> gradient(points.size(), 0.0), to_bound(samples.bound.size(), 0.0);
            for (Index s = 0; s < samples.size; ++s) gradient[2 * s + j] = 1.0;
            auto to_yhat = gradient;
            Call call;
            solver.vjp(samples.given(eps), band,
                       {{gradient.data(), samples.size, 2}, {to_yhat.data(), samples.size, 2},
                        {to_bound.data(), samples.size, samples.rows}, {nullptr, samples.size, 0, 2}},
                       {1, false}, call);
            for (Index s = 0; s < samples.size; ++s) {
                const Index at = 2 * s + j;
                const double right = (up.y[at] - samples.y[at]) / h, left = (samples.y[at] - down.y[at]) / h;
                if (std::abs(right - left) > 1e-4) continue;  // a kink
                ++smooth;
                wrong += !(std::abs(to_yhat[2 * s + k] - 0.5 * (left + right)) <= 1e-4);
            }
        }
    }
    CHECK(smooth > 300);
    CHECK(wrong == 0);
}

TEST("beyond the cap fewer products are mixed, and it is told") {
    const Problem problem = crosses();
    Solver solver(problem.component, problem.choices);
    Samples samples(problem, {0.0, 0.0}, {-1.5, 2.5});
    samples.solve(solver, 5.0, 2);
    CHECK(samples.capped[0]);
    CHECK(samples.products[0] >= 1 && samples.products[0] <= 2);
}

TEST("out of time is told") {
    const Problem problem = crosses();
    Solver solver(problem.component, problem.choices);
    Samples samples(problem, std::vector<double>(2000, 0.0), {-1.5, 2.5});
    samples.solve(solver, 5.0, 64, 1, 0.0);
    Index told = 0;
    for (Index s = 0; s < samples.size; ++s) {
        told += samples.capped[s] || samples.status[s] == std::int8_t(Status::failed);
    }
    CHECK(told > 0);  // the clock is looked at after some work only
}
