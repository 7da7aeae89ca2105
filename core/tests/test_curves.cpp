#include "check.hpp"
#include "models.hpp"

#include <random>

#include "gdpnet/curved_face.hpp"
#include "gdpnet/euclidean_search.hpp"

using namespace gdpnet;

namespace {

// Rows over a box that may be curved; every column is an output.
struct CurvedModel : Model {
    CurvedModel(Index n, double low, double high) : Model(n, n, low, high) {
        component.rows.plain = true;
        component.rows.curves.start = {0};
    }

    // `a z + weight shape(T z - t) <= b`
    Index add_curved(Shape shape, const std::vector<Row>& T, const Row& t, const Row& a, double b, double weight = 1.0,
                     double exponent = 2.0) {
        Curves& curves = component.rows.curves;
        const Index first = Index(curves.argument.size());
        for (std::size_t k = 0; k < T.size(); ++k) curves.argument.push_back(add_row(T[k], t[k]));
        curves.curve.push_back({shape, weight, exponent, first, Index(curves.argument.size())});
        curves.row.push_back(add_row(a, b));
        curves.start.push_back(Index(curves.curve.size()));
        return curves.row.back();
    }

    Component finished() const {
        Component made = component;
        made.rows.add_cuts();
        return made;
    }
};

struct Found {
    std::vector<double> z;
    double distance = 0.0, bound = 0.0;
    Status status = Status::numerical;
    std::vector<std::int8_t> assignment;
    Index nodes = 0;
};

template <class S>
Found project(const CurvedModel& model, const std::vector<double>& yhat, std::vector<double> weights = {}) {
    const Component component = model.finished();
    const Index n = component.rows.columns(), clauses = component.logic.clauses();
    if (weights.empty()) weights.assign(yhat.size(), 1.0);
    Found found;
    found.z.resize(n);
    found.assignment.resize(component.logic.tied.size());
    const bool active[] = {true, true, true, true};
    std::int8_t status = 0;
    S search(component);
    const Batch batch{{active, 1, clauses}, {nullptr, 1, 0, n}, {model.bound.data(), 1, Index(model.bound.size())},
                      {yhat.data(), 1, Index(yhat.size())}, weights};
    const Answers answers{{found.z.data(), 1, n}, {&found.distance, 1}, {&found.bound, 1}, {&status, 1},
                          {found.assignment.data(), 1, Index(found.assignment.size())}, {&found.nodes, 1}};
    Call call;
    if constexpr (std::is_same_v<S, Search>) {
        search.project(batch, {1000, 1e-9, 0.0}, answers, nullptr, {1, true}, call);
    } else {
        search.project(batch, {1000, 1e-9, 0.0}, answers, {1, true}, call);
    }
    found.status = Status(status);
    return found;
}

const std::vector<Row> kPlane = {{1.0, 0.0}, {0.0, 1.0}};

// One row of every kind over three columns, arguments of positive values near the origin.
CurvedModel of_every_kind() {
    CurvedModel model(3, -9.0, 9.0);
    const std::vector<Row> T = {{1.0, 0.5, -0.3}, {0.2, -1.0, 0.4}};
    const Row a = {0.3, -0.2, 0.1};
    const std::vector<Row> one = {{0.5, -0.4, 0.3}};
    model.add_curved(Shape::squares, T, {0.3, -0.7}, a, 0.4, 1.7);
    model.add_curved(Shape::squares, T, {0.3, -0.7}, {0.0, 0.0, 0.0}, 0.4, 1.7);
    model.add_curved(Shape::norm, T, {0.3, -0.7}, a, 0.4, 0.6);
    model.add_curved(Shape::exp, one, {0.2}, a, 0.9, 1.3);
    model.add_curved(Shape::log, one, {-3.0}, a, -0.9, 1.3);
    model.add_curved(Shape::power, one, {-3.0}, a, 2.0, 1.3, 1.5);
    model.add_curved(Shape::power, one, {0.2}, a, 2.0, 1.3, 4.0);
    model.add_curved(Shape::power, one, {-3.0}, a, -1.0, 1.3, 0.5);
    model.add_curved(Shape::power, one, {-3.0}, a, 1.0, 1.3, -1.0);
    return model;
}

}  // namespace

TEST("gradients and curvature are those of differences") {
    const CurvedModel model = of_every_kind();
    const Component component = model.finished();
    Sample sample(component.rows);
    sample.load({nullptr, 0, 3}, model.bound);
    CurvedRows curved(component.rows);
    const Index every[] = {0, 1, 2};
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    for (int trial = 0; trial < 50; ++trial) {
        std::vector<double> z(3), slope(3), above(3), below(3);
        for (double& value : z) value = normal(random);
        for (Index c = 0; c < component.rows.curves.count(); ++c) {
            CHECK(curved.smooth(sample, c, z.data()));
            const double value = curved.gradient(sample, c, z.data(), slope);
            CHECK_NEAR(value, CurvedRows::excess(sample, c, z.data()), 1e-14);
            Table<double> bend(3, 3);
            curved.add_curvature(sample, c, z.data(), 2.0, every, bend);
            for (Index j = 0; j < 3; ++j) {
                const double h = 1e-5, at = z[j];
                z[j] = at + h;
                const double up = curved.gradient(sample, c, z.data(), above);
                z[j] = at - h;
                const double down = curved.gradient(sample, c, z.data(), below);
                z[j] = at;
                CHECK_NEAR((up - down) / (2.0 * h), slope[j], 1e-7 * std::max(1.0, std::abs(slope[j])));
                for (Index i = 0; i < 3; ++i)
                    CHECK_NEAR((above[i] - below[i]) / h, bend(i, j), 1e-6 * std::max(1.0, std::abs(bend(i, j))));
            }
        }
    }
}

TEST("a cut leaves out its point, and nothing that satisfies the row") {
    const CurvedModel model = of_every_kind();
    const Component component = model.finished();
    Sample sample(component.rows);
    sample.load({nullptr, 0, 3}, model.bound);
    CurvedRows curved(component.rows);
    std::mt19937 random(2);
    std::normal_distribution<double> normal;
    std::vector<double> cut(3), inside(3);
    int cuts = 0, compared = 0;
    for (int trial = 0; trial < 300; ++trial) {
        std::vector<double> z(3);
        for (double& value : z) value = 6.0 * normal(random);
        for (Index c = 0; c < component.rows.curves.count(); ++c) {
            if (CurvedRows::excess(sample, c, z.data()) < 1e-6) continue;
            const double right = curved.cut(sample, c, z.data(), cut);
            const auto over = [&](const std::vector<double>& x) { return cut[0] * x[0] + cut[1] * x[1] + cut[2] * x[2] - right; };
            CHECK(over(z) > 0.0);
            ++cuts;
            const double size = std::abs(right) + std::abs(cut[0]) + std::abs(cut[1]) + std::abs(cut[2]);
            for (int other = 0; other < 40; ++other) {
                for (double& value : inside) value = 4.0 * normal(random);
                if (CurvedRows::excess(sample, c, inside.data()) > 0.0) continue;
                CHECK(over(inside) <= 1e-12 * size);
                ++compared;
            }
        }
    }
    CHECK(cuts > 500 && compared > 5000);
}

TEST("of two discs the nearer, of equally near ones the first, in both norms") {
    CurvedModel model(2, -6.0, 6.0);
    const Index left = model.add_curved(Shape::squares, kPlane, {-2.0, 0.0}, {0.0, 0.0}, 1.0);
    const Index right = model.add_curved(Shape::norm, kPlane, {3.0, 0.0}, {0.0, 0.0}, 2.0);
    model.add_rule({{left}, {right}});
    const Found tie = project<EuclideanSearch>(model, {0.0, 0.0});
    CHECK(tie.status == Status::solved && tie.assignment[0] == 1 && tie.assignment[1] == 0);
    CHECK_NEAR(tie.z[0], -1.0, 1e-14);
    const Found slanted = project<EuclideanSearch>(model, {-4.0, 2.0});
    CHECK_NEAR(std::sqrt(slanted.distance), std::sqrt(8.0) - 1.0, 1e-13);
    CHECK_NEAR(slanted.bound, slanted.distance, 1e-12);
    const Found corner = project<Search>(model, {-4.0, 2.0});
    CHECK_NEAR(corner.distance, 4.0 - std::sqrt(2.0), 1e-13);
    CHECK(project<Search>(model, {3.0, 0.5}).status == Status::accepted);
    const Found weighted = project<EuclideanSearch>(model, {3.0, 4.0}, {1.0, 0.5});
    CHECK_NEAR(weighted.z[1], 2.0, 1e-12);
}

TEST("a disc that a row cuts, a cone at its apex, a point, and sets that touch") {
    CurvedModel cut(2, -6.0, 6.0);
    cut.add_rule({{cut.add_curved(Shape::squares, kPlane, {0.0, 0.0}, {0.0, 0.0}, 4.0), cut.add_row({1.0, 1.0}, -1.0)}});
    const Found corner = project<EuclideanSearch>(cut, {3.0, -0.4});
    CHECK_NEAR(corner.z[0] + corner.z[1], -1.0, 1e-14);
    CHECK(corner.z[0] * corner.z[0] + corner.z[1] * corner.z[1] <= 4.0 + 1e-13);

    CurvedModel cone(3, -6.0, 6.0);
    cone.add_rule({{cone.add_curved(Shape::norm, {{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}, {0.0, 0.0}, {0.0, 0.0, -1.0}, 0.0)}});
    for (const Row& yhat : {Row{0.3, -0.2, -1.0}, Row{0.0, 0.0, -1.0}}) {
        const Found apex = project<EuclideanSearch>(cone, yhat);
        CHECK(apex.status == Status::solved);
        for (double value : apex.z) CHECK_NEAR(value, 0.0, 1e-7);
    }
    CHECK_NEAR(project<EuclideanSearch>(cone, {1.0, 0.0, 0.0}).distance, 0.5, 1e-13);

    CurvedModel point(2, -4.0, 4.0);
    point.add_rule({{point.add_curved(Shape::squares, kPlane, {1.0, 1.0}, {0.0, 0.0}, 0.0)}});
    CHECK_NEAR(project<EuclideanSearch>(point, {2.0, 1.0}).z[0], 1.0, 1e-9);
    CHECK_NEAR(project<Search>(point, {2.0, 3.0}).z[1], 1.0, 1e-9);

    CurvedModel touching(2, -5.0, 5.0);
    touching.add_rule({{touching.add_curved(Shape::squares, kPlane, {1.0, 0.0}, {0.0, 0.0}, 1.0),
                        touching.add_curved(Shape::squares, kPlane, {-1.0, 0.0}, {0.0, 0.0}, 1.0)}});
    CHECK_NEAR(project<EuclideanSearch>(touching, {0.0, 1.0}).z[1], 0.0, 1e-6);
    CHECK_NEAR(project<Search>(touching, {0.0, 1.0}).z[1], 0.0, 1e-6);
}

TEST("what touches in one point is that point in l1, however many columns there are") {
    for (const Index n : {2, 8, 20, 30}) {
        const Row none(std::size_t(n), 0.0);
        Row yhat, axis;
        std::vector<Row> one(std::size_t(n), none);
        for (Index j = 0; j < n; ++j) {
            yhat.push_back(std::sin(1.0 + 2.0 * double(j)));
            axis.push_back((j % 3 == 0 ? -1.0 : 1.0) / std::sqrt(double(n)));
            one[j][j] = 1.0;
        }
        const auto along = [&](const Row& direction, double way) {
            Row point = direction;
            for (double& value : point) value *= way;
            return point;
        };
        // A ball of radius 1 that the origin lies on, and another thing that does, or begins `gap` farther.
        const auto found = [&](int kind, double gap) {
            CurvedModel model(n, -9.0, 9.0);
            const Row& direction = kind == 3 ? one[0] : axis;
            const Index ball = model.add_curved(Shape::squares, one, along(direction, -1.0), none, 1.0);
            Index other;
            if (kind == 0) other = model.add_curved(Shape::squares, one, along(direction, 0.7 + gap), none, 0.7 * 0.7);
            if (kind == 1) other = model.add_curved(Shape::norm, one, along(direction, 0.7 + gap), none, 0.7);
            if (kind >= 2) other = model.add_row(along(direction, -1.0), -gap);  // a row; a bound
            model.add_rule({{ball, other}});
            return project<Search>(model, yhat);
        };
        for (int kind = 0; kind < 4; ++kind) {
            const Found touching = found(kind, 0.0);
            CHECK(touching.status == Status::solved);
            // Few columns are left to cuts, whose 1e-13 of a ball's height is the root of that across.
            for (double value : touching.z) CHECK_NEAR(value, 0.0, n < 20 ? 1e-6 : 1e-12);
            CHECK(found(kind, 1e-6).status == Status::no_solution);
        }
    }
}

TEST("sets that are apart have no solution") {
    CurvedModel model(2, -6.0, 6.0);
    model.add_rule({{model.add_curved(Shape::squares, kPlane, {-2.0, 0.0}, {0.0, 0.0}, 1.0),
                     model.add_curved(Shape::norm, kPlane, {2.0, 0.3}, {0.0, 0.0}, 2.9)}});
    CHECK(project<EuclideanSearch>(model, {0.0, 1.0}).status == Status::no_solution);
    CHECK(project<Search>(model, {0.0, 1.0}).status == Status::no_solution);
}

TEST("derivatives are those of differences, by predictions and right sides") {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    int compared = 0;
    for (int trial = 0; trial < 60; ++trial) {
        CurvedModel model(3, -6.0, 6.0);
        std::vector<Row> T(3, Row(3));
        Row t(3), a(3), yhat(3), gradient(3);
        for (Row& row : T)
            for (double& value : row) value = normal(random);
        for (auto* values : {&t, &a, &yhat, &gradient})
            for (double& value : *values) value = normal(random);
        for (double& value : yhat) value *= 4.0;
        const Index ball = trial % 2 ? model.add_curved(Shape::squares, T, t, a, 2.0, 0.7) : model.add_curved(Shape::norm, T, t, {0.0, 0.0, 0.0}, 1.1);
        model.add_rule({{ball, model.add_row({1.0, -0.5, 0.2}, 0.6)}});
        const Component component = model.finished();
        const std::vector<double> weights = {1.0, 0.7, 1.3};
        for (bool kinks : {false, true}) {
            const auto at = [&](const CurvedModel& moved, const Row& from) {
                return kinks ? project<Search>(moved, from, weights) : project<EuclideanSearch>(moved, from, weights);
            };
            const Found found = at(model, yhat);
            if (found.status != Status::solved) continue;
            const Index m = Index(model.bound.size());
            std::vector<double> own = gradient, to_yhat(3, 0.0), to_bound(std::size_t(m), 0.0);
            CurvedFace face(component, kinks);
            face.vjp({{}, {nullptr, 0, 3}, model.bound, yhat, weights}, found.assignment, found.z, own, to_yhat, to_bound, {nullptr, 0, 3});
            const double h = 1e-6;
            const auto loss = [&](const Found& of) { return gradient[0] * of.z[0] + gradient[1] * of.z[1] + gradient[2] * of.z[2]; };
            for (Index k = 0; k < 3 + m; ++k) {
                CurvedModel more = model, less = model;
                Row ahead = yhat, behind = yhat;
                (k < 3 ? ahead[k] : more.bound[k - 3]) += h;
                (k < 3 ? behind[k] : less.bound[k - 3]) -= h;
                const double up = loss(at(more, ahead)), down = loss(at(less, behind)), here = loss(found);
                if (std::abs((up - here) - (here - down)) > 1e-3 * h) continue;  // a kink
                const double wanted = (up - down) / (2.0 * h);
                CHECK_NEAR(k < 3 ? to_yhat[k] : to_bound[k - 3], wanted, 1e-5 * std::max(1.0, std::abs(wanted)));
                ++compared;
            }
        }
    }
    CHECK(compared > 400);
}
