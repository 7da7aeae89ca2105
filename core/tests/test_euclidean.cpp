#include "check.hpp"
#include "models.hpp"

#include <algorithm>
#include <random>

#include "gdpnet/euclidean_search.hpp"
#include "gdpnet/face.hpp"

using namespace gdpnet;

namespace {

struct Found {
    std::vector<double> z;
    double square = 0.0, bound = 0.0;
    Status status = Status::numerical;
    std::vector<std::int8_t> assignment;
    Index nodes = 0;
};

// `lost` above 0: by columns, not by products of rows.
Found project(const Model& model, const std::vector<double>& yhat, std::vector<double> weights = {}, double lost = 0.0) {
    const Component& component = model.component;
    const Index n = component.rows.columns(), m = component.rows.count(), clauses = component.logic.clauses();
    if (weights.empty()) weights.assign(yhat.size(), 1.0);
    Found found;
    found.z.resize(n);
    found.assignment.resize(component.logic.tied.size());
    const bool active[] = {true, true, true, true, true, true, true, true};
    std::int8_t status = 0;
    EuclideanSearch search(component);
    const Batch batch{{active, 1, clauses}, {nullptr, 1, 0, n}, {model.bound.data(), 1, m},
                      {yhat.data(), 1, Index(yhat.size())}, weights};
    const Answers answers{{found.z.data(), 1, n}, {&found.square, 1}, {&found.bound, 1}, {&status, 1},
                          {found.assignment.data(), 1, Index(found.assignment.size())}, {&found.nodes, 1}};
    Call call;
    search.project(batch, {1000, 1e-9, lost}, answers, {1, true}, call);
    found.status = Status(status);
    return found;
}

}  // namespace

TEST("of two disjuncts the nearer, of equally near ones the first") {
    Model model(1, 1, 0.0, 10.0);
    model.add_rule_of({{{{1.0}, 3.0}}, {{{-1.0}, -7.0}}});
    CHECK(project(model, {4.5}).z[0] == 3.0);
    CHECK(project(model, {5.5}).z[0] == 7.0);
    const Found tie = project(model, {5.0});
    CHECK(tie.z[0] == 3.0 && tie.assignment[0] == 1 && tie.assignment[1] == 0);
    CHECK_NEAR(tie.square, 4.0, 1e-14);
}

TEST("the best product of random rules is found, by comparison with all of them") {
    std::mt19937 random(2);
    std::normal_distribution<double> normal;
    for (int trial = 0; trial < 60; ++trial) {
        const Index n = 2 + trial % 3, rules = 1 + trial % 3, width = 3;
        std::vector<std::vector<std::vector<std::pair<Row, double>>>> all(rules);
        Model model(n, n, -3.0, 3.0);
        for (auto& disjuncts : all) {
            disjuncts.resize(width);
            for (auto& disjunct : disjuncts) {
                disjunct.resize(1 + trial % 2);
                for (auto& [a, b] : disjunct) {
                    a.resize(n);
                    for (double& value : a) value = normal(random);
                    b = normal(random) - 0.5;
                }
            }
            model.add_rule_of(disjuncts);
        }
        std::vector<double> yhat(n);
        for (double& value : yhat) value = normal(random);
        const Found found = project(model, yhat);
        double best = kInfinity;
        Index products = 1;
        for (Index r = 0; r < rules; ++r) products *= width;
        for (Index p = 0; p < products; ++p) {
            Model product(n, n, -3.0, 3.0);
            Index rest = p;
            for (const auto& disjuncts : all) {
                for (const auto& [a, b] : disjuncts[rest % width])
                    product.component.rows.global_rows.push_back(product.add_row(a, b));
                rest /= width;
            }
            best = std::min(best, project(product, yhat).square);
        }
        if (best == kInfinity) {
            CHECK(found.status == Status::no_solution);
        } else {
            CHECK(found.status == Status::solved);
            CHECK_NEAR(found.square, best, 1e-11 * std::max(1.0, best));
        }
    }
}

TEST("products of rows and columns find the same, parallel rows, equalities and weights included") {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    const auto up_to = [&](int most) { return int(random() % unsigned(most + 1)); };
    for (int trial = 0; trial < 20000; ++trial) {
        const Index n = 1 + up_to(5);
        const bool whole = up_to(1);
        const double size = up_to(3) ? 1.0 : 100.0;
        Model model(n, n, up_to(2) ? -2.0 * size : 0.0, up_to(4) ? 2.0 * size : kInfinity);
        Row last(std::size_t(n), 1.0);
        const auto row = [&] {
            const int kind = up_to(7);
            const double sign = up_to(1) ? 1.0 : -1.0, tilt = up_to(2) ? 0.0 : 1e-7;
            if (kind >= 2) {
                for (double& value : last) value = whole ? up_to(4) - 2.0 : normal(random);
            } else if (kind == 1) {  // a bound
                std::fill(last.begin(), last.end(), 0.0);
            } else {
                for (double& value : last) value *= sign * (1.0 + tilt * normal(random));
            }
            if (std::all_of(last.begin(), last.end(), [](double value) { return value == 0.0; }))
                last[std::size_t(up_to(int(n) - 1))] = sign;
            return std::pair<Row, double>(last, size * (whole ? 0.5 * (up_to(8) - 4) : normal(random) - 0.3));
        };
        for (int k = up_to(2); k > 0; --k) {
            const auto [a, b] = row();
            model.component.rows.global_rows.push_back(model.add_row(a, b + size, up_to(4) == 0));
        }
        for (int rules = 1 + up_to(3); rules > 0; --rules) {
            std::vector<std::vector<std::pair<Row, double>>> disjuncts(std::size_t(2 + up_to(1)));
            for (auto& disjunct : disjuncts)
                for (int k = 1 + up_to(2); k > 0; --k) disjunct.push_back(row());
            model.add_rule_of(disjuncts);
        }
        std::vector<double> yhat(static_cast<std::size_t>(n)), weights(std::size_t(n), 1.0);
        for (double& value : yhat) value = size * (whole ? 0.5 * (up_to(8) - 4) : normal(random));
        if (up_to(2) == 0)
            for (double& value : weights) value = std::exp2(up_to(12) - 6);
        const Found found = project(model, yhat, weights), other = project(model, yhat, weights, 1e-300);
        if (other.status == Status::numerical) continue;
        CHECK(found.status == other.status);
        if (found.status != Status::solved) continue;
        CHECK_NEAR(found.square, other.square, 1e-10 * std::max(1.0, other.square));
        CHECK(found.assignment == other.assignment);
    }
}

TEST("what large multipliers lose of their digits is no contradiction") {
    Model model(4, 4, 0.0, 3.0);  // of four corners of the box one is left, weights make rows nearly parallel
    model.component.rows.global_rows = {model.add_row({1.0, 1.0, 0.0, 1.0}, 0.0)};
    const Row all = {1.0, 1.0, 1.0, 1.0};
    model.add_rule_of({{{all, 0.5}, {{-1.0, -1.0, -1.0, -1.0}, 0.0}}, {{{1.0, -1.0, 1.0, 1.0}, 0.25}, {{0.0, 0.0, -1.0, 0.0}, 1.0}}});
    const Found found = project(model, {0.0, 1.0, 1.0, 1.5}, {8.0, 0.5, 2.0, 0x1p-6});
    CHECK(found.status == Status::solved);
    CHECK(found.z[0] == 0.0 && found.z[1] == 0.0 && found.z[3] == 0.0);
    CHECK_NEAR(found.z[2], 0.5, 1e-12);
}

TEST("rows that are nearly parallel, and meet in a corner of the box") {
    Model model(6, 6, 0.0, 3.0);
    const double a = 1.0 - 1.8e-7, b = 1.0 + 1.4e-7, c = 1.0 + 2.7e-7;
    model.component.rows.global_rows = {model.add_row({a, 1.0, 1.0, 1.0, b, 1.0}, 0.0),
                                        model.add_row({a, 1.0, 1.0, 1.0, c, 1.0}, 0.0, true)};
    const Found found = project(model, {0.5, -0.5, -0.5, -0.5, -0.25, 0.25});
    CHECK(found.status == Status::solved);
    for (double value : found.z) CHECK_NEAR(value, 0.0, 1e-9);
}

TEST("a column without cost may move as far as it likes") {
    for (double coefficient : {1e-3, 1.0, 1e3}) {
        Model model(2, 1, -kInfinity, kInfinity);
        model.component.rows.global_rows = {model.add_row({-1.0, -coefficient}, -1000.0)};
        model.add_rule_of({{{{1.0, 0.0}, 3.0}}, {{{-1.0, 0.0}, -7.0}}});
        const Found found = project(model, {4.5});
        CHECK(found.status == Status::solved && found.nodes <= 3);
        CHECK_NEAR(found.z[0], 3.0, 1e-12);
        CHECK(found.z[0] + coefficient * found.z[1] >= 1000.0 - 1e-6);
    }
}

TEST("whole columns") {
    Model model(2, 2, 0.0, 9.0);
    model.component.rows.integer[1] = 1;
    model.component.rows.global_rows = {model.add_row({1.0, 2.0}, 7.0)};
    const Found found = project(model, {4.0, 2.6});  // of 4, 1 and 1, 3 and 3, 2
    CHECK(found.z[1] == std::nearbyint(found.z[1]));
    CHECK_NEAR(found.square, std::min({1.0 + 0.36, 9.0 + 0.16, 1.6 * 1.6 + 0.0}), 1e-12);
}

TEST("contradictions") {
    Model model(1, 1, 0.0, 1.0);
    model.add_rule_of({{{{1.0}, -2.0}}, {{{-1.0}, -2.0}}});
    CHECK(project(model, {0.5}).status == Status::no_solution);
}

TEST("the derivative on a plane is the projector in the weighted metric") {
    Model model(3, 3, -9.0, 9.0);
    model.component.rows.global_rows = {model.add_row({1.0, 2.0, -1.0}, 1.0, true)};
    const std::vector<double> yhat = {0.3, 0.2, 0.9}, weights = {1.0, 2.0, 0.5};
    const Found found = project(model, yhat, weights);
    const double a[3] = {1.0, 2.0, -1.0};
    double metric = 0.0;
    for (int j = 0; j < 3; ++j) metric += a[j] * a[j] / (weights[j] * weights[j]);
    Face face(model.component, false);
    for (int i = 0; i < 3; ++i) {
        std::vector<double> gradient(3, 0.0), to_yhat(3, 0.0), to_bound(1, 0.0);
        gradient[i] = 1.0;
        face.vjp({{}, {nullptr, 0, 3}, model.bound, yhat, weights}, found.assignment, found.z, gradient, to_yhat, to_bound,
                 {nullptr, 0, 3});
        for (int j = 0; j < 3; ++j)
            CHECK_NEAR(to_yhat[j], (i == j) - a[i] * a[j] / (weights[i] * weights[i]) / metric, 1e-14);
        CHECK_NEAR(to_bound[0], a[i] / (weights[i] * weights[i]) / metric, 1e-14);
    }
}
