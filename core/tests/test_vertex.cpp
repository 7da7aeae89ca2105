#include <memory>
#include <random>

#include "check.hpp"
#include "gdpnet/vertex.hpp"

using namespace gdpnet;

namespace {

// Two rules over three outputs: rows 0 to 3 in pairs, row 4 always holds, row 5 has a coefficient that varies.
Component component() {
    Component made;
    Rows& r = made.rows;
    r.outputs = 3;
    r.lower.assign(3, -5.0);
    r.upper.assign(3, 5.0);
    r.integer.assign(3, 0);
    r.start = {0, 1, 3, 5, 6, 9, 11};
    r.column = {0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 2};
    r.coefficient = {1.0, -1.0, -0.5, 1.0, 1.25, -1.0, 1.0, 1.0, 1.0, 1.0, 1.5};
    r.largest = {1.0, 1.0, 1.25, 1.0, 1.0, 1.5};
    r.scale.assign(6, 1.0);
    r.equality.assign(6, 0);
    r.varying = {5};
    r.place = {-1, -1, -1, -1, -1, 0};
    r.global_rows = {4, 5};
    r.plain = true;
    Logic& l = made.logic;
    l.clause_start = {0, 2, 4};
    l.clause_literal = {1, 2, 3, 4};
    l.clause_guard = {-1, -1};
    l.true_start = {0, 1, 2, 3, 4};
    l.true_row = {0, 1, 2, 3};
    l.false_start.assign(5, 0);
    l.guarded_start.assign(5, 0);
    l.tied.assign(4, 0);
    return made;
}

struct Projected {
    static constexpr Index n = 3, m = 6;
    std::vector<double> z = std::vector<double>(3), distance = {0}, proved = {0};
    std::vector<std::int8_t> status = {0}, state = std::vector<std::int8_t>(3), assignment = std::vector<std::int8_t>(4);
    std::vector<Index> nodes = {0}, source = std::vector<Index>(3), tight = std::vector<Index>(3);
    std::vector<double> multipliers = std::vector<double>(3), reduced = std::vector<double>(3);

    Dictionaries dictionaries() {
        return {{state.data(), 1, n}, {source.data(), 1, n}, {tight.data(), 1, n}, {multipliers.data(), 1, n}, {reduced.data(), 1, n}};
    }
    Projected(Search& search, const std::vector<double>& yhat, const std::vector<double>& bound, const std::vector<double>& varying) {
        const bool active[] = {true, true};
        const std::vector<double> weights = {1.0, 1.25, 0.75};
        const Batch batch{{active, 1, 2}, {varying.data(), 1, 1, n}, {bound.data(), 1, m}, {yhat.data(), 1, n}, weights};
        const Answers answers{{z.data(), 1, n}, distance, proved, status, {assignment.data(), 1, 4}, nodes};
        const Dictionaries detail = dictionaries();
        Call call;
        search.project(batch, {1000, 1e-9, 0.0}, answers, &detail, {1, true}, call);
    }
};

}  // namespace

TEST("square and wide systems are solved") {
    Table<double> square(2, 2);
    square.values = {0.0, 2.0, 4.0, 1.0};
    std::vector<double> right = {6.0, 11.0};
    solve_in_place(square, right, 2);
    CHECK_NEAR(right[0], 2.0, 1e-15);
    CHECK_NEAR(right[1], 3.0, 1e-15);
    Table<double> wide(2, 3);
    wide.values = {1.0, 2.0, 1.0, 2.0, 4.0, 1.0};  // the first two columns say the same
    std::vector<double> solution(3);
    right = {5.0, 7.0};
    solve_independent(wide, right, 2, 3, solution);
    CHECK_NEAR(solution[0] + 2.0 * solution[1] + solution[2], 5.0, 1e-14);
    CHECK_NEAR(2.0 * solution[0] + 4.0 * solution[1] + solution[2], 7.0, 1e-14);
    CHECK(solution[0] == 0.0 || solution[1] == 0.0);
}

TEST("derivatives are those of differences") {
    Search search{component()};
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(-4.0, 4.0);
    Index compared = 0;
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<double> yhat(3), bound(6), varying = {1.0 + 0.1 * uniform(random), 0.0, 1.5};
        for (double& y : yhat) y = uniform(random);
        for (double& b : bound) b = 0.5 * uniform(random);
        Projected at(search, yhat, bound, varying);
        if (Status(at.status[0]) != Status::solved) continue;
        const std::vector<double> direction = {0.3, -0.7, 0.5};
        const auto loss = [&](const Projected& p) { return 0.3 * p.z[0] - 0.7 * p.z[1] + 0.5 * p.z[2]; };
        std::vector<double> gradient = direction, to_yhat(3), to_bound(6), to_varying(3);
        const Dictionaries detail = at.dictionaries();
        pull_back_vertex(search.component().rows, {varying.data(), 1, 1, 3}, detail, {at.z.data(), 1, 3},
                         {{gradient.data(), 1, 3}, {to_yhat.data(), 1, 3}, {to_bound.data(), 1, 6}, {to_varying.data(), 1, 1, 3}});
        const double h = 1e-6;
        const auto compare = [&](std::vector<double>& moved, std::size_t j, double wanted) {
            const double kept = moved[j];
            moved[j] = kept + h;
            const double up = loss(Projected(search, yhat, bound, varying));
            moved[j] = kept - h;
            const double down = loss(Projected(search, yhat, bound, varying));
            moved[j] = kept;
            const double forward = (up - loss(at)) / h, backward = (loss(at) - down) / h;
            if (std::abs(forward - backward) > 1e-4) return;  // on a kink
            ++compared;
            CHECK_NEAR(wanted, 0.5 * (forward + backward), 1e-4);
        };
        for (std::size_t j = 0; j < 3; ++j) compare(yhat, j, to_yhat[j]);
        for (std::size_t i = 0; i < 6; ++i) compare(bound, i, to_bound[i]);
        compare(varying, 0, to_varying[0]);
        compare(varying, 2, to_varying[2]);
    }
    CHECK(compared > 500);
}

TEST("answers do not depend on threads") {
    Search search{component()};
    const Index size = 300;
    std::mt19937 random(4);
    std::uniform_real_distribution<double> uniform(-5.0, 5.0);
    std::vector<double> yhat(std::size_t(3 * size)), bound(std::size_t(6 * size)), varying(std::size_t(3 * size), 1.0);
    for (double& y : yhat) y = uniform(random);
    for (double& b : bound) b = uniform(random);
    const auto active = std::make_unique<bool[]>(std::size_t(2 * size));
    std::fill_n(active.get(), 2 * size, true);
    const std::vector<double> weights(3, 1.0);
    std::vector<std::vector<double>> found;
    for (Index threads : {1, 2, 7}) {
        std::vector<double> z(std::size_t(3 * size)), distance(static_cast<std::size_t>(size)), proved(distance);
        std::vector<std::int8_t> status(static_cast<std::size_t>(size)), assignment(std::size_t(4 * size));
        std::vector<Index> nodes(static_cast<std::size_t>(size));
        const Answers answers{{z.data(), size, 3}, distance, proved, status, {assignment.data(), size, 4}, nodes};
        Call call;
        search.project({{active.get(), size, 2}, {varying.data(), size, 1, 3}, {bound.data(), size, 6}, {yhat.data(), size, 3}, weights},
                       {1000, 1e-9, 0.0}, answers, nullptr, {threads, true}, call);
        for (double& x : z) x = std::isnan(x) ? -99.0 : x;
        found.push_back(z);
    }
    CHECK(found[0] == found[1]);
    CHECK(found[0] == found[2]);
}
