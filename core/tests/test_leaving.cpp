#include <memory>

#include "check.hpp"
#include "gdpnet/exact.hpp"
#include "models.hpp"

using namespace gdpnet;

namespace {

// Parts of a whole, y0 + ... + y3 = 1, and a rule for each: y_j >= 1/2, or it is left out.
struct Halves {
    Model model{4, 4, 0.0, 1.0};
    Droppable rules;

    explicit Halves(std::vector<double> importance) {
        model.component.rows.global_rows = {model.add_row({1, 1, 1, 1}, 1.0, true)};
        for (Index j = 0; j < 4; ++j) {
            Row row(4, 0.0);
            row[std::size_t(j)] = -1.0;
            model.add_rule({{model.add_row(row, -0.5)}, {}});
            model.component.logic.tied.back() = 1;
            rules.boolean.push_back(2 * j + 1);
            rules.clause.push_back(j);
        }
        rules.importance = std::move(importance);
    }
};

struct Samples {
    Index size;
    std::vector<double> bound, yhat, weights = std::vector<double>(4, 1.0), z, distance, least;
    std::vector<std::int8_t> status;
    std::vector<Truth> assignment;
    std::vector<Index> nodes;
    std::unique_ptr<bool[]> active;

    Samples(const Halves& halves, std::vector<double> given)
        : size(Index(given.size()) / 4), yhat(std::move(given)), z(yhat.size()), distance(std::size_t(size)),
          least(std::size_t(size)), status(std::size_t(size)), assignment(std::size_t(8 * size)), nodes(std::size_t(size)),
          active(std::make_unique<bool[]>(std::size_t(4 * size))) {
        std::fill_n(active.get(), 4 * size, true);
        for (Index s = 0; s < size; ++s) bound.insert(bound.end(), halves.model.bound.begin(), halves.model.bound.end());
    }

    Batch batch() const {
        return {{active.get(), size, 4}, {nullptr, size, 0, 4}, {bound.data(), size, 5}, {yhat.data(), size, 4}, weights,
                {nullptr, size, 0}};
    }
    Answers answers() { return {{z.data(), size, 4}, distance, least, status, {assignment.data(), size, 8}, nodes}; }
};

}  // namespace

TEST("Samples with the same rules have one pattern") {
    Halves halves({1, 1, 1, 1});
    Samples samples(halves, std::vector<double>(16, 0.25));
    samples.active[4 * 2 + 3] = false;
    samples.bound[5 * 3] = 0.75;
    const Patterns found(samples.batch());
    CHECK((found.first == std::vector<Index>{0, 2, 3}));
    CHECK((found.pattern == std::vector<Index>{0, 0, 1, 2}));
}

TEST("Of equally cheap sets the one with the nearest point is left out") {
    Halves halves({1, 1, 1, 1});
    Samples samples(halves, {0.4, 0.1, 0.2, 0.3, 0.1, 0.2, 0.5, 0.2});
    Search search(halves.model.component);
    Call call;
    Batch batch = samples.batch();
    const SetsOfBatch sets = search.cheapest(batch, halves.rules, 1000, {1, false}, call);
    CHECK(sets.cheapest.size() == 1);
    CHECK(sets.of(0).least == 2.0);
    CHECK(sets.of(0).sets.size() == 6);
    batch.leaving = &sets;
    search.project(batch, {1000, 0.0, 0.0}, samples.answers(), nullptr, {1, false}, call);
    // Halves of 0 and 3, 0.1 and 0.2 short; of 2 and, 0.3 short, the first of 1 and 3.
    CHECK(std::abs(samples.distance[0] - 0.6) < 1e-12);
    CHECK(std::abs(samples.distance[1] - 0.6) < 1e-12);
    CHECK(samples.assignment[1] == -1 && samples.assignment[3] == 1 && samples.assignment[5] == 1 && samples.assignment[7] == -1);
    CHECK(samples.assignment[8 + 1] == 1 && samples.assignment[8 + 5] == -1);
}

TEST("Importances count before distances") {
    Halves halves({1, 5, 1, 5});
    Samples samples(halves, {0.5, 0.0, 0.5, 0.0});
    Search search(halves.model.component);
    Call call;
    Batch batch = samples.batch();
    const SetsOfBatch sets = search.cheapest(batch, halves.rules, 1000, {1, false}, call);
    CHECK((sets.of(0).sets == std::vector<std::vector<Index>>{{0, 2}}));
    batch.leaving = &sets;
    search.project(batch, {1000, 0.0, 0.0}, samples.answers(), nullptr, {1, false}, call);
    CHECK(std::abs(samples.distance[0] - 2.0) < 1e-12);
}

TEST("Where the globals contradict each other leaving out rules does not help") {
    Halves halves({1, 1, 1, 1});
    Samples samples(halves, std::vector<double>(4, 0.25));
    samples.bound[0] = 5.0;
    Search search(halves.model.component);
    Call call;
    CHECK(search.cheapest(samples.batch(), halves.rules, 1000, {1, false}, call).of(0).hopeless);
}

TEST("Products that go with a set are listed with the bounds that follow") {
    Halves halves({1, 1, 1, 1});
    Samples samples(halves, {0.4, 0.1, 0.2, 0.3});
    Search search(halves.model.component);
    Call call;
    const SetsOfBatch sets = search.cheapest(samples.batch(), halves.rules, 1000, {1, false}, call);
    const KeptProducts& products = sets.of(0).products;
    CHECK((products.set == std::vector<Index>{0, 1, 2, 3, 4, 5}));
    // Rules 0 and 1 are left out: halves of 2 and 3, nothing of 0 and 1.
    CHECK((std::vector<Index>(products.literals(0).begin(), products.literals(0).end()) == std::vector<Index>{5, 7}));
    for (Index j = 0; j < 4; ++j) {
        CHECK(std::abs(products.box[std::size_t(j)] - (j < 2 ? 0.0 : 0.5)) < 1e-6);
        CHECK(std::abs(products.box[std::size_t(4 + j)] - (j < 2 ? 0.0 : 0.5)) < 1e-6);
    }
    // They are as far away as their boxes are, about, and bounds are bounds.
    const std::vector<double> distances{1.0, 1.2, 1.4, 0.6, 0.8, 1.0};
    for (Index p = 0; p < 6; ++p) {
        const double bound = products.bound(p, {Norm::l1, samples.yhat, samples.weights});
        CHECK(bound <= distances[std::size_t(p)] && bound > distances[std::size_t(p)] - 1e-6);
    }
}

TEST("Where products are too many, the sets are tried one by one") {
    // Twelve rules, each of two disjuncts that go with all others, and two that contradict each other.
    Model model(14, 14, 0.0, 1.0);
    const auto at_least = [&](Index j, double a, double b) {
        Row row(14, 0.0);
        row[std::size_t(j)] = a;
        return model.add_row(row, b);
    };
    Droppable rules;
    const auto add = [&](std::vector<std::vector<Index>> disjuncts) {
        disjuncts.emplace_back();
        model.add_rule(disjuncts);
        model.component.logic.tied.back() = 1;
        rules.boolean.push_back(model.component.logic.booleans() - 1);
        rules.clause.push_back(model.component.logic.clauses() - 1);
        rules.importance.push_back(1.0);
    };
    for (Index j = 0; j < 12; ++j) add({{at_least(j, 1.0, 0.25)}, {at_least(j, -1.0, -0.75)}});
    add({{at_least(12, 1.0, 0.25)}});
    add({{at_least(12, -1.0, -0.75)}});
    std::vector<double> yhat(14, 0.4), weights(14, 1.0), z(14), distance(1), least(1);
    std::vector<std::int8_t> status(1);
    std::vector<Truth> assignment(std::size_t(model.component.logic.booleans()));
    std::vector<Index> nodes(1);
    const auto active = std::make_unique<bool[]>(14);
    std::fill_n(active.get(), 14, true);
    Batch batch{{active.get(), 1, 14}, {nullptr, 1, 0, 14}, {model.bound.data(), 1, Index(model.bound.size())},
                {yhat.data(), 1, 14}, weights, {nullptr, 1, 0}};
    Search search(model.component);
    Call call;
    const SetsOfBatch sets = search.cheapest(batch, rules, 100000, {1, false}, call);
    CHECK((sets.of(0).sets == std::vector<std::vector<Index>>{{12}, {13}}));
    CHECK(sets.of(0).products.count() == 0);
    batch.leaving = &sets;
    search.project(batch, {100000, 0.0, 0.0},
                   {{z.data(), 1, 14}, distance, least, status, {assignment.data(), 1, Index(assignment.size())}, nodes},
                   nullptr, {1, false}, call);
    CHECK(std::abs(distance[0] - 13 * 0.15) < 1e-12);
}
