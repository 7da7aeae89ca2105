// Rules taken apart: the same distances as a search of the whole, and bounds that hold.
#include <memory>
#include <random>

#include "check.hpp"
#include "gdpnet/exact.hpp"
#include "models.hpp"

using namespace gdpnet;

namespace {

struct Answer {
    double distance, bound;
    Status status;
    Index nodes;
    std::vector<double> z;
};

Answer project(const Model& model, const std::vector<double>& yhat, const Limits& limits, double patience = kInfinity) {
    Search search(model.component);
    const Index n = model.component.rows.columns(), booleans = model.component.logic.booleans();
    const auto clauses = std::size_t(model.component.logic.clauses());
    const auto active = std::make_unique<bool[]>(clauses);
    std::fill_n(active.get(), clauses, true);
    const std::vector<double> weights(yhat.size(), 1.0);
    Answer found;
    found.z.resize(std::size_t(n));
    std::int8_t status;
    std::vector<Truth> assignment(static_cast<std::size_t>(booleans));
    const Batch batch{{active.get(), 1, Index(clauses)}, {nullptr, 1, 0, n}, {model.bound.data(), 1, Index(model.bound.size())},
                      {yhat.data(), 1, Index(yhat.size())}, weights};
    const Answers answers{{found.z.data(), 1, n}, {&found.distance, 1}, {&found.bound, 1}, {&status, 1},
                          {assignment.data(), 1, booleans}, {&found.nodes, 1}};
    Call call;
    call.patience = patience;
    search.project(batch, limits, answers, nullptr, {1, true}, call);
    found.status = Status(status);
    return found;
}

// Gaps, implications and alternatives over outputs in [0, 1], caps of sums, and a sum of all.
Model groups(Index n, Index rules, bool with_sum, std::mt19937& random) {
    Model model(n, n, 0.0, 1.0);
    std::uniform_real_distribution<double> share(0.0, 1.0);
    const auto column = [&] { return std::size_t(random() % std::uint32_t(n)); };
    const auto row = [&](std::initializer_list<std::pair<std::size_t, double>> terms) {
        Row a(static_cast<std::size_t>(n), 0.0);
        for (auto [j, value] : terms) a[j] = value;
        return a;
    };
    if (with_sum) model.component.rows.global_rows.push_back(model.add_row(Row(static_cast<std::size_t>(n), 1.0), 0.4 * double(n), true));
    for (Index r = 0; r < rules; ++r) {
        const std::size_t a = column(), b = (a + 1 + column()) % std::size_t(n), c = column();
        if (r % 4 == 0) {
            Row some(static_cast<std::size_t>(n), 0.0);
            for (int k = 0; k < 4; ++k) some[column()] = 1.0;
            model.component.rows.global_rows.push_back(model.add_row(some, 2.0));
        } else if (r % 4 == 1) {
            model.add_rule_of({{{row({{a, 1.0}}), 0.6}}, {{row({{b, 1.0}}), 0.3}}});
        } else if (r % 4 == 2) {
            const double low = 0.2 + 0.3 * share(random);
            model.add_rule_of({{{row({{a, 1.0}}), low}}, {{row({{a, -1.0}}), -low - 0.25}}});
        } else if (a != b) {
            model.add_rule_of({{{row({{a, -1.0}, {b, -1.0}}), -0.9}}, {{row({{c, 1.0}}), 0.2}},
                               {{row({{a, 1.0}}), 0.1}, {row({{b, 1.0}}), 0.1}}});
        }
    }
    return model;
}

std::vector<double> prediction(Index n, std::mt19937& random) {
    std::normal_distribution<double> noise(0.4, 0.3);
    std::vector<double> yhat;
    for (Index j = 0; j < n; ++j) yhat.push_back(noise(random));
    return yhat;
}

const Limits kWhole{100000, 0.0, 0.0, false, 1 << 30, 0};
const Limits kApart{100000, 0.0, 0.0, false, 0, 1};

}  // namespace

TEST("distances are those of the whole") {
    std::mt19937 random(1);
    int infeasible = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const Index n = 8 + trial % 30;
        const Model model = groups(n, 4 + Index(random() % std::uint32_t(n)), trial % 3 > 0, random);
        const std::vector<double> yhat = prediction(n, random);
        const Answer whole = project(model, yhat, kWhole), apart = project(model, yhat, kApart);
        CHECK(whole.status == apart.status);
        infeasible += whole.status == Status::no_solution;
        if (whole.status == Status::solved) CHECK(std::abs(whole.distance - apart.distance) < 1e-9);
    }
    CHECK(infeasible < 200);
}

TEST("parts that share no column need no search of the whole") {
    std::mt19937 random(2);
    const Model model = groups(300, 150, false, random);
    const std::vector<double> yhat = prediction(300, random);
    const Answer apart = project(model, yhat, kApart), whole = project(model, yhat, kWhole);
    CHECK(apart.status == Status::solved);
    CHECK(apart.nodes < 2000);
    CHECK(whole.status != Status::solved || std::abs(whole.distance - apart.distance) < 1e-9);
    CHECK(whole.status != Status::limited || whole.nodes == 100000);
}

TEST("a search that ends early has a bound below the distance") {
    std::mt19937 random(3);
    for (int trial = 0; trial < 20; ++trial) {
        const Model model = groups(60, 60, true, random);
        const std::vector<double> yhat = prediction(60, random);
        const Answer whole = project(model, yhat, kWhole), early = project(model, yhat, {100000, 0.0, 0.0, 0, 1}, 2e5);
        if (whole.status == Status::solved) CHECK(early.bound <= whole.distance + 1e-9);
    }
}

