#include <memory>
#include <random>

#include "check.hpp"
#include "gdpnet/nearest.hpp"
#include "gdpnet/within.hpp"

using namespace gdpnet;

namespace {

// Rows (dense, `a z <= b`, already of size about 1) and clauses of untied disjuncts with listed rows.
struct Problem {
    Index n;
    std::vector<std::vector<double>> rows;
    std::vector<double> right;
    std::vector<Index> global_rows;
    std::vector<std::vector<std::vector<Index>>> clauses;  // clause -> disjunct -> rows
    bool whole = false;
    std::vector<std::vector<double>> prices{};             // clause -> disjunct; empty where nothing costs anything

    Component component() const {
        Component made;
        Rows& r = made.rows;
        r.outputs = n;
        r.lower.assign(std::size_t(n), -10.0);
        r.upper.assign(std::size_t(n), 10.0);
        r.integer.assign(std::size_t(n), whole);
        r.start = {0};
        for (auto& row : rows) {
            for (Index j = 0; j < n; ++j) {
                if (row[j] == 0.0) continue;
                r.column.push_back(j);
                r.coefficient.push_back(row[j]);
            }
            r.start.push_back(Index(r.column.size()));
            r.largest.push_back(1.0);
            r.scale.push_back(1.0);
            r.equality.push_back(0);
            r.place.push_back(-1);
        }
        r.global_rows = global_rows;
        Logic& l = made.logic;
        l.clause_start = l.true_start = {0};
        Index boolean = 0;
        for (auto& clause : clauses) {
            for (auto& disjunct : clause) {
                l.true_row.insert(l.true_row.end(), disjunct.begin(), disjunct.end());
                l.true_start.push_back(Index(l.true_row.size()));
                l.clause_literal.push_back(++boolean);
            }
            l.clause_start.push_back(Index(l.clause_literal.size()));
            l.clause_guard.push_back(-1);
        }
        l.false_start.assign(std::size_t(boolean + 1), 0);
        l.guarded_start.assign(std::size_t(boolean + 1), 0);
        l.tied.assign(std::size_t(boolean), 0);
        for (Index k = 0; k < boolean && !prices.empty(); ++k) {
            l.priced.push_back(k);
            l.priced_entry.push_back(k);
        }
        return made;
    }
};

struct Machine {
    Component component;
    Sample sample{component.rows};
    Linear linear{sample};
    Assignment assignment{component};
    Stack stack{component};
    Nearest nearest{linear, assignment};
    std::vector<double> weights, prices;
    std::unique_ptr<bool[]> active;

    Machine(const Problem& problem) : component(problem.component()), weights(std::size_t(problem.n), 1.0) {
        active = std::make_unique<bool[]>(problem.clauses.size());
        std::fill_n(active.get(), problem.clauses.size(), true);
        sample.load({}, problem.right);
        for (auto& clause : problem.prices) prices.insert(prices.end(), clause.begin(), clause.end());
    }
    bool begin(const std::vector<double>& yhat) {
        linear.start(component.rows.lower, component.rows.upper, yhat, weights);
        assignment.begin({active.get(), std::size_t(component.logic.clauses())}, prices, 1.0);
        for (Index i : component.rows.global_rows)
            if (!linear.enforce(i)) return false;
        return true;
    }
    double project(const std::vector<double>& yhat, Index* nodes = nullptr) {
        Call call;
        Watch watch(call, false);
        Effort effort;
        const bool alive = begin(yhat);
        nearest.begin(100000);
        const Finish finish = search(linear, assignment, stack, nearest, watch, effort, alive);
        CHECK(finish == Finish::complete);
        CHECK(!nearest.trouble);
        if (nodes) *nodes = effort.opened;
        return nearest.distance;
    }
};

// The least distance over all products, each by a linear program of its own.
double enumerate(const Problem& problem, const std::vector<double>& yhat) {
    double best = std::numeric_limits<double>::infinity();
    std::vector<std::size_t> choice(problem.clauses.size(), 0);
    while (true) {
        Problem product = problem;
        for (std::size_t c = 0; c < choice.size(); ++c)
            for (Index i : problem.clauses[c][choice[c]]) product.global_rows.push_back(i);
        product.clauses.clear();
        product.prices.clear();
        double cost = 0.0;
        for (std::size_t c = 0; c < choice.size() && !problem.prices.empty(); ++c) cost += problem.prices[c][choice[c]];
        best = std::min(best, Machine(product).project(yhat) + cost);
        std::size_t c = 0;
        while (c < choice.size() && ++choice[c] == problem.clauses[c].size()) choice[c++] = 0;
        if (c == choice.size()) return best;
    }
}

Problem random_problem(std::mt19937& random, bool whole) {
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    Problem problem{4, {}, {}, {}, {}, whole};
    const auto row = [&] {
        std::vector<double> a(4);
        for (double& x : a) x = uniform(random) > 0.0 ? uniform(random) : 0.0;
        a[std::size_t(random() % 4)] = 1.5;
        problem.rows.push_back(a);
        problem.right.push_back(3.0 * uniform(random));
        return Index(problem.right.size()) - 1;
    };
    problem.global_rows = {row()};
    for (int c = 0; c < 4; ++c) {
        problem.clauses.emplace_back();
        for (int d = 0; d < 3; ++d) {
            problem.clauses.back().push_back({row()});
            if (d == 1) problem.clauses.back().back().push_back(row());
        }
    }
    return problem;
}

}  // namespace

TEST("y <= 3 or y >= 7, from 4.5: the answer is 3") {
    Problem problem{1, {{1.0}, {-1.0}}, {3.0, -7.0}, {}, {{{0}, {1}}}};
    Machine machine(problem);
    CHECK_NEAR(machine.project({4.5}), 1.5, 1e-12);
    CHECK_NEAR(machine.nearest.best.value[0], 3.0, 1e-12);
    CHECK(machine.nearest.best_state[0] == 1);
    CHECK_NEAR(machine.project({6.0}), 1.0, 1e-12);
    CHECK_NEAR(machine.nearest.best.value[0], 7.0, 1e-12);
    CHECK(machine.project({1.0}) == 0.0);
}

TEST("the nearest point is that of the best product") {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(-8.0, 8.0);
    for (int trial = 0; trial < 60; ++trial) {
        const Problem problem = random_problem(random, trial % 3 == 2);
        std::vector<double> yhat(4);
        for (double& y : yhat) y = uniform(random);
        const double found = Machine(problem).project(yhat);
        const double best = enumerate(problem, yhat);
        if (best == std::numeric_limits<double>::infinity()) {
            CHECK(found == best);
        } else {
            CHECK_NEAR(found, best, 1e-7);
        }
    }
}

TEST("a rule is bought off where holding it costs more") {
    Problem problem{1, {{1.0}, {-1.0}}, {3.0, -7.0}, {}, {{{0}, {1}, {}}}, false, {{0.0, 0.0, 1.2}}};
    Machine machine(problem);
    CHECK_NEAR(machine.project({4.5}), 1.2, 1e-12);
    CHECK(machine.nearest.best.value[0] == 4.5);
    CHECK(machine.nearest.best_state[2] == 1 && machine.nearest.best_state[0] == 0);
    CHECK_NEAR(machine.project({4.0}), 1.0, 1e-12);
    CHECK(machine.nearest.best_state[0] == 1 && machine.nearest.best_state[2] == 0);
    CHECK(machine.project({2.0}) == 0.0);
}

TEST("with prices, what is least is that of the best product") {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(-8.0, 8.0);
    for (int trial = 0; trial < 200; ++trial) {
        Problem problem = random_problem(random, trial % 5 == 4);
        for (auto& clause : problem.clauses) {
            problem.prices.emplace_back();
            if (random() % 2) clause.push_back({});
            for (std::size_t d = 0; d < clause.size(); ++d)
                problem.prices.back().push_back(random() % 3 || clause[d].empty() ? 0.25 * double(random() % 13) : 0.0);
        }
        std::vector<double> yhat(4);
        for (double& y : yhat) y = uniform(random);
        Machine machine(problem);
        const double found = machine.project(yhat), best = enumerate(problem, yhat);
        if (best == std::numeric_limits<double>::infinity()) {
            CHECK(found == best);
            continue;
        }
        CHECK_NEAR(found, best, 1e-7);
        for (std::size_t c = 0; c < problem.clauses.size(); ++c) {
            int chosen = 0;
            for (std::size_t d = 0; d < problem.clauses[c].size(); ++d)
                chosen += machine.nearest.best_state[std::size_t(machine.component.logic.clause_start[c]) + d] == 1;
            CHECK(chosen == 1);
        }
    }
}

TEST("listing meets every product within the reach once") {
    std::mt19937 random(2);
    for (int trial = 0; trial < 20; ++trial) {
        const Problem problem = random_problem(random, false);
        Machine machine(problem);
        const std::vector<double> yhat{1.0, -2.0, 3.0, 0.5};
        const bool alive = machine.begin(yhat);
        const Index cap = 100, booleans = machine.component.logic.booleans();
        std::vector<double> distance(static_cast<std::size_t>(cap));
        Table<double> point(cap, 4);
        Table<Truth> assignment(cap, booleans);
        Within within(machine.linear, machine.assignment, 5.0, {distance, point, assignment});
        Call call;
        Watch watch(call, false);
        Effort effort;
        search(machine.linear, machine.assignment, machine.stack, within, watch, effort, alive);
        CHECK(within.found <= 81);
        for (Index a = 0; a < within.found; ++a) {
            CHECK(distance[std::size_t(a)] <= 5.0);
            for (Index b = 0; b < a; ++b) CHECK(!std::equal(assignment[a].begin(), assignment[a].end(), assignment[b].begin()));
            for (Index k = 0; k < booleans; ++k) {
                if (assignment(a, k) != 1) continue;
                for (Index e = machine.component.logic.true_start[k]; e < machine.component.logic.true_start[k + 1]; ++e)
                    CHECK(machine.sample.holds(machine.component.logic.true_row[e], &point(a, 0)));
            }
        }
        const double nearest = machine.project(yhat);
        double least = std::numeric_limits<double>::infinity();
        for (Index a = 0; a < within.found; ++a) least = std::min(least, distance[std::size_t(a)]);
        if (nearest <= 5.0) CHECK_NEAR(nearest, least, 1e-9);
    }
}

TEST("what nearly parallel rows determine is right to the last digits") {
    // Numbers of 40 bits, so that right sides are those of the point to the last one.
    const double a = std::ldexp(std::nearbyint(std::ldexp(1.9, 40)), -40);
    const double b = std::ldexp(std::nearbyint(std::ldexp(1.1, 40)), -40);
    const double apart = std::ldexp(1.0, -27), x = 0.5, y = 0.25;
    const Problem problem{2, {{a, b}, {-a - apart, -b}}, {a * x + b * y, -(a + apart) * x - b * y}, {0, 1}, {}};
    Machine machine(problem);
    CHECK_NEAR(machine.project({-5.0, 5.0}), 10.25, 1e-14);
    CHECK_NEAR(machine.nearest.best.value[0], x, 1e-15);
    CHECK_NEAR(machine.nearest.best.value[1], y, 1e-15);
}
