#include <array>
#include <random>

#include "check.hpp"
#include "gdpnet/extended/engine.hpp"

using namespace gdpnet;
using namespace gdpnet::extended;

namespace {

SparseRows rows_of(const std::vector<std::vector<double>>& dense, const std::vector<double>& rhs) {
    SparseRows rows(Index(dense.size()), Index(dense.size() * dense[0].size()));
    Small at = 0;
    for (std::size_t i = 0; i < dense.size(); ++i) {
        for (std::size_t j = 0; j < dense[i].size(); ++j) {
            if (dense[i][j] == 0.0) continue;
            rows.column[at] = Small(j);
            rows.coefficient[at++] = dense[i][j];
        }
        const auto r = Index(i);
        rows.start[r + 1] = at;
        rows.rhs[r] = rhs[i];
        rows.tolerance[r] = 1e-10 * std::max(1.0, std::abs(rhs[i]));
        rows.equality[r] = false;
    }
    return rows;
}

// The least weighted distance over all points in the plane at which two of the lines meet: rows, sides of the
// box, and the kinks of the distance.
double least_by_enumeration(const std::vector<std::vector<double>>& dense, const std::vector<double>& rhs,
                            const std::array<double, 2>& kink, const std::array<double, 2>& weight) {
    std::vector<std::array<double, 3>> lines;
    for (std::size_t i = 0; i < rhs.size(); ++i) lines.push_back({dense[i][0], dense[i][1], rhs[i]});
    for (double side : {-1.0, 1.0}) lines.push_back({1.0, 0.0, side}), lines.push_back({0.0, 1.0, side});
    lines.push_back({1.0, 0.0, kink[0]});
    lines.push_back({0.0, 1.0, kink[1]});
    double best = kInfinity;
    for (const auto& a : lines) {
        for (const auto& b : lines) {
            const double determinant = a[0] * b[1] - a[1] * b[0];
            if (std::abs(determinant) < 1e-9) continue;
            const double x = (a[2] * b[1] - a[1] * b[2]) / determinant, y = (a[0] * b[2] - a[2] * b[0]) / determinant;
            bool inside = std::abs(x) <= 1.0 + 1e-9 && std::abs(y) <= 1.0 + 1e-9;
            for (std::size_t i = 0; i < rhs.size(); ++i) inside &= dense[i][0] * x + dense[i][1] * y <= rhs[i] + 1e-9;
            if (inside) best = std::min(best, weight[0] * std::abs(x - kink[0]) + weight[1] * std::abs(y - kink[1]));
        }
    }
    return best;
}

// Two outputs in [0, 1], one block for each list of products, each product a box as four rows.
struct Boxes {
    Sources sources;
    Tables tables;
    Extent extent;

    explicit Boxes(const std::vector<std::vector<std::array<double, 4>>>& blocks) {
        sources.outputs = 2;
        sources.lower = {0.0, 0.0};
        sources.upper = {1.0, 1.0};
        sources.start = {0};
        tables.layout_part = {0, 1};
        tables.part_column = {0, 2};
        tables.column = {0, 1};
        tables.part_global = {0};
        tables.part_block = {0, Index(blocks.size())};
        tables.block_product = {0};
        tables.product_row = {0};
        for (const auto& products : blocks) {
            tables.block_product.push_back(tables.block_product.back() + Index(products.size()));
            for (const auto& box : products) {
                for (int side = 0; side < 4; ++side) {
                    const Index row = Index(sources.scale.size());
                    sources.column.push_back(side % 2);
                    sources.coefficient.push_back(side < 2 ? -1.0 : 1.0);
                    sources.start.push_back(row + 1);
                    sources.scale.push_back(1.0);
                    sources.equality.push_back(0);
                    sources.varying.push_back(-1);
                    bound.push_back(side < 2 ? -box[std::size_t(side)] : box[std::size_t(side)]);
                    tables.row.push_back(row);
                    tables.member.push_back(row);
                }
                tables.product_row.push_back(Index(tables.member.size()));
            }
        }
        tables.part_row = {0, Index(tables.row.size())};
        extent = {64, 512, 8192, Index(blocks.size()), tables.block_product.back()};
    }

    std::vector<double> bound;  // of the rows, for every sample
};

struct Answer {
    std::vector<double> y{0.0, 0.0}, weight;
    double value = 0.0;
    std::int8_t outcome = 0;
    std::vector<double> to_start{0.0, 0.0}, to_bound;
};

// One sample, and the gradient of its first output.
Answer solve(const Boxes& boxes, std::array<double, 2> start, const std::vector<double>& price = {}) {
    Engine engine(boxes.sources, boxes.tables, boxes.extent);
    const Index products = boxes.extent.products, blocks = boxes.extent.blocks, m = Index(boxes.bound.size());
    const std::array<Index, 1> layout{0};
    const std::array<double, 2> weights{1.0, 1.0}, gradient{1.0, 0.0};
    const Batch batch{layout, {boxes.bound.data(), 1, m}, {nullptr, 1, 0, 2}, {start.data(), 1, 2}, weights,
                      {price.data(), 1, Index(price.size())}};
    Answer answer;
    answer.weight.resize(std::size_t(products));
    answer.to_bound.resize(std::size_t(m));
    answer.to_start = {1.0, 0.0};
    std::vector<std::int32_t> product(static_cast<std::size_t>(blocks)), rank(product), column(64), row(64);
    std::vector<std::int8_t> state(static_cast<std::size_t>(products));
    std::vector<double> value(64);
    Index size = 0;
    const Bases bases{{state.data(), 1, products}, {rank.data(), 1, blocks}, {&size, 1, 1},
                      {column.data(), 1, 64},      {row.data(), 1, 64},      {value.data(), 1, 64}};
    Call call;
    engine.solve(batch, 1e-6, {1, true}, call,
                 {{answer.y.data(), 1, 2}, {&answer.value, 1}, {&answer.outcome, 1},
                  {answer.weight.data(), 1, products}, {product.data(), 1, blocks}}, bases);
    const ConstBases kept{bases.state, bases.rank, bases.size, bases.column, bases.row, bases.value};
    engine.vjp(batch, {1, true}, call, {&answer.outcome, 1}, kept, {gradient.data(), 1, 2},
               {{answer.to_start.data(), 1, 2}, {answer.to_bound.data(), 1, m}, {nullptr, 1, 0, 2}});
    return answer;
}

}  // namespace

TEST("the dual simplex finds what enumeration finds") {
    std::mt19937 random(0);
    std::normal_distribution<double> normal;
    int infeasible = 0;
    for (int round = 0; round < 2000; ++round) {
        const int m = 1 + round % 6;
        std::vector<std::vector<double>> dense;
        std::vector<double> rhs;
        for (int i = 0; i < m; ++i) {
            dense.push_back({normal(random), normal(random)});
            rhs.push_back(0.3 * normal(random));
        }
        const std::array<double, 2> kink{normal(random), normal(random)}, weight{1.0, 0.5};
        const std::array<double, 2> low{-1.0, -1.0}, high{1.0, 1.0};
        SparseRows rows = rows_of(dense, rhs);
        Simplex simplex(2, m, 2 * m);
        simplex.dictionary.start(2, low.data(), high.data(), 2, kink.data(), weight.data());
        for (Index i = 0; i < m; ++i) CHECK(simplex.dictionary.enforce(rows, i));
        Call call;
        Watch watch(call, false);
        const Optimisation outcome = settle(simplex, rows, kInfinity, watch);
        const double expected = least_by_enumeration(dense, rhs, kink, weight);
        CHECK((outcome == Optimisation::infeasible) == (expected == kInfinity));
        infeasible += outcome == Optimisation::infeasible;
        if (outcome != Optimisation::optimal) continue;
        CHECK_NEAR(simplex.dictionary.distance(), expected, 1e-8);
        for (Index i = 0; i < m; ++i) CHECK(rows.holds(i, simplex.dictionary.value.data()));
    }
    CHECK(infeasible > 100);
    CHECK(infeasible < 1000);
}

TEST("refactoring changes nothing but rounding") {
    std::vector<std::vector<double>> dense{{1.0, 1.0, 1.0}, {-1.0, 0.5, 0.0}, {0.0, -1.0, 0.25}};
    SparseRows rows = rows_of(dense, {-0.5, -0.25, -0.1});
    Simplex simplex(3, 3, 9);
    const std::array<double, 3> low{-1.0, -1.0, -1.0}, high{1.0, 1.0, 1.0}, kink{0.2, 0.3, 0.1}, weight{1.0, 1.0, 1.0};
    Dictionary& dictionary = simplex.dictionary;
    dictionary.start(3, low.data(), high.data(), 3, kink.data(), weight.data());
    for (Index i = 0; i < 3; ++i) dictionary.enforce(rows, i);
    Call call;
    Watch watch(call, false);
    CHECK(settle(simplex, rows, kInfinity, watch) == Optimisation::optimal);
    CHECK(dictionary.basics > 0);
    const std::vector<double> tableau(dictionary.line(0), dictionary.line(dictionary.basics));
    const std::vector<double> reduced(dictionary.reduced.data(), dictionary.reduced.data() + 3);
    CHECK(refactor(dictionary, rows));
    for (std::size_t k = 0; k < tableau.size(); ++k) CHECK_NEAR(dictionary.tableau[Index(k)], tableau[k], 1e-12);
    for (std::size_t p = 0; p < 3; ++p) CHECK_NEAR(dictionary.reduced[Index(p)], reduced[p], 1e-12);
}

TEST("one block: its nearest box, and derivatives that follow its side") {
    const Boxes boxes({{{0.0, 0.0, 0.2, 1.0}, {0.9, 0.0, 1.0, 1.0}}});
    const Answer answer = solve(boxes, {0.5, 0.5});
    CHECK(answer.outcome == 0);
    CHECK_NEAR(answer.value, 0.3, 1e-12);
    CHECK_NEAR(answer.y[0], 0.2, 1e-12);
    CHECK_NEAR(answer.y[1], 0.5, 1e-12);
    CHECK(answer.weight[0] == 1.0 && answer.weight[1] == 0.0);
    CHECK_NEAR(answer.to_start[0], 0.0, 1e-12);
    CHECK_NEAR(answer.to_bound[2], 1.0, 1e-12);  // y0 <= 0.2
}

TEST("two blocks: the hulls meet where no product of one holds") {
    // Corners (0, 0) or (1, 1), and corners (0, 1) or (1, 0): the diagonals meet in the middle.
    const Boxes boxes({{{0.0, 0.0, 0.0, 0.0}, {1.0, 1.0, 1.0, 1.0}}, {{0.0, 1.0, 0.0, 1.0}, {1.0, 0.0, 1.0, 0.0}}});
    for (const auto& start : {std::array{0.1, 0.2}, std::array{0.9, 0.3}, std::array{0.5, 0.5}}) {
        const Answer answer = solve(boxes, start);
        CHECK(answer.outcome == 0);
        CHECK_NEAR(answer.y[0], 0.5, 1e-9);
        CHECK_NEAR(answer.y[1], 0.5, 1e-9);
        for (double weight : answer.weight) CHECK_NEAR(weight, 0.5, 1e-9);
    }
}

TEST("one block with prices: distance and price together") {
    const Boxes boxes({{{0.0, 0.0, 0.2, 1.0}, {0.9, 0.0, 1.0, 1.0}, {0.0, 0.0, 1.0, 1.0}}});
    struct { double first, second, third, value, y; } cases[] = {
        {0.0, 0.0, 1.0, 0.3, 0.2},   // to hold costs less than the third box, which has the prediction in it
        {0.2, 0.0, 1.0, 0.4, 0.9},   // the nearest is not the cheapest
        {0.2, 0.1, 0.4, 0.4, 0.5},   // bought off
        {2.0, 2.0, 1.5, 1.5, 0.5},
    };
    for (const auto& c : cases) {
        const Answer answer = solve(boxes, {0.5, 0.5}, {c.first, c.second, c.third});
        CHECK(answer.outcome == 0);
        CHECK_NEAR(answer.value, c.value, 1e-12);
        CHECK_NEAR(answer.y[0], c.y, 1e-12);
        CHECK_NEAR(answer.y[1], 0.5, 1e-12);
    }
}

TEST("two blocks with prices: weights of the products pay") {
    const Boxes boxes({{{0.0, 0.0, 0.0, 0.0}, {1.0, 1.0, 1.0, 1.0}}, {{0.0, 1.0, 0.0, 1.0}, {1.0, 0.0, 1.0, 0.0}}});
    const Answer plain = solve(boxes, {0.1, 0.2});
    for (const auto& price : {std::vector{0.0, 3.0, 0.5, 0.0}, std::vector{1.0, 0.5, 2.0, 7.0}}) {
        const Answer answer = solve(boxes, {0.1, 0.2}, price);
        const double paid = 0.5 * (price[0] + price[1] + price[2] + price[3]);
        CHECK_NEAR(answer.value, plain.value + paid, 1e-9);
        for (double weight : answer.weight) CHECK_NEAR(weight, 0.5, 1e-9);
    }
    // With a box around everything in each block there is a way out at its price.
    const std::array<double, 4> all{0.0, 0.0, 1.0, 1.0};
    const Boxes out({{{0.0, 0.0, 0.0, 0.0}, {1.0, 1.0, 1.0, 1.0}, all}, {{0.0, 1.0, 0.0, 1.0}, all}});
    const Answer both = solve(out, {0.1, 0.2}, {0.0, 0.0, 0.125, 0.0, 0.0625});
    CHECK_NEAR(both.value, 0.1875, 1e-12);
    CHECK_NEAR(both.y[0], 0.1, 1e-12);
    CHECK(both.weight[2] == 1.0 && both.weight[4] == 1.0);
}

TEST("blocks that exclude each other are contradictory") {
    const Boxes boxes({{{0.0, 0.0, 0.2, 1.0}}, {{0.5, 0.0, 1.0, 1.0}}});
    const Answer answer = solve(boxes, {0.3, 0.3});
    CHECK(answer.outcome == 1);
    CHECK(answer.value == kInfinity);
    CHECK(std::isnan(answer.y[0]));
}

TEST("derivatives are those of differences") {
    const Boxes boxes({{{0.0, 0.0, 0.3, 0.4}, {0.7, 0.5, 1.0, 1.0}}, {{0.0, 0.6, 0.4, 1.0}, {0.5, 0.0, 1.0, 0.3}}});
    const double step = 1e-6;
    int smooth = 0;
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(0.05, 0.95);
    for (int round = 0; round < 100; ++round) {
        const std::array<double, 2> start{uniform(random), uniform(random)};
        const Answer here = solve(boxes, start);
        CHECK(here.outcome == 0);
        for (std::size_t i = 0; i < boxes.bound.size(); ++i) {
            Boxes more = boxes, less = boxes;
            more.bound[i] += step;
            less.bound[i] -= step;
            const double ahead = (solve(more, start).y[0] - here.y[0]) / step;
            const double behind = (here.y[0] - solve(less, start).y[0]) / step;
            if (std::abs(ahead - behind) > 1e-4) continue;  // a kink
            ++smooth;
            CHECK_NEAR(here.to_bound[i], 0.5 * (ahead + behind), 1e-4);
        }
    }
    CHECK(smooth > 1000);
}
