// The interior point of several blocks against dense algebra: a tiny program whose optimality
// conditions are checked at the end of the central path, and whose derivative is that of differences.
#include "gdpnet/blocks/blocks.hpp"

#include <array>

#include "check.hpp"
#include "gdpnet/blocks/instance.hpp"
#include "gdpnet/cpu.hpp"

using namespace gdpnet;
using namespace gdpnet::blocks;

namespace {

// One output y in [0, 10] and two products: y <= 3, y >= 7. Rows of the table: the two rules, upper and
// lower bound, range of eta; entries (p, q, lambda).
Arrays gap_in_the_middle() {
    Arrays arrays;
    arrays.outputs = 1;
    arrays.columns = {0};
    arrays.lower = {0.0};
    arrays.upper = {10.0};
    arrays.source = {0, 1};
    arrays.varying = {-1, -1};
    arrays.shared = {1.0, -1.0};
    arrays.first_copy = {0, 2};
    arrays.first_place = {0, 4, 8};
    arrays.row = {0, 2, 3, 4, 1, 2, 3, 4};
    arrays.equality = {0, 0, 0, 0, 0};
    arrays.start = {0, 3, 6, 9, 12, 15};
    for (int row = 0; row < 5; ++row)
        for (Index j = 0; j < 3; ++j) arrays.entry.push_back(j);
    return arrays;
}

struct Solved {
    std::vector<double> y, path, to_yhat, to_bound, to_price;
    std::array<bool, 64> solved;
};

// `price`: of the two products of each sample; none if empty.
Solved run(Part& part, const std::vector<double>& yhat, double eps, Threads threads = {}, const std::vector<double>& price = {}) {
    const Index size = Index(yhat.size());
    std::vector<Index> samples(yhat.size());
    std::vector<double> bound, weights{1.0};
    for (Index s = 0; s < size; ++s) {
        samples[std::size_t(s)] = s;
        bound.insert(bound.end(), {3.0, -7.0});
    }
    Solved found;
    found.y = yhat;
    found.solved.fill(true);
    found.path.resize(std::size_t(size * part.path_width()));
    Batch batch;
    batch.samples = samples.data();
    batch.bound = bound.data();
    batch.varying = nullptr;
    batch.yhat = yhat.data();
    batch.weights = weights.data();
    batch.size = size;
    batch.bounds = 2;
    batch.columns = 1;
    batch.outputs = 1;
    batch.eps = eps;
    batch.path = found.path.data();
    batch.price = price.empty() ? nullptr : price.data();
    Call call;
    part.solve(batch, {found.y.data(), found.solved.data()}, threads, call);
    const std::vector<double> gradient(yhat.size(), 1.0);
    found.to_yhat = gradient;
    found.to_bound.assign(bound.size(), 0.0);
    found.to_price.assign(price.size(), 0.0);
    double* to_price = price.empty() ? nullptr : found.to_price.data();
    part.vjp(batch, {gradient.data(), found.to_yhat.data(), found.to_bound.data(), nullptr, to_price}, threads, call);
    return found;
}

// The same program by its one degree of freedom: with weight l on the first product (l z1 <= l (3 - yhat)
// and so on), minimised over a fine grid. Copies are as short as their products allow.
double cost_of(double l, double yhat, double eps, double dearer) {
    const double q = l * (yhat - 3.0), p = (1.0 - l) * (7.0 - yhat);
    return p + q + l * dearer + eps * (p * p + q * q + 0.5 * l * l + 0.5 * (1.0 - l) * (1.0 - l));
}
// `dearer`: by how much the first product is than the second.
double best_point(double yhat, double eps, double dearer = 0.0) {
    double best = 0.0;
    for (int k = 0; k <= 1000000; ++k)
        if (cost_of(k * 1e-6, yhat, eps, dearer) < cost_of(best, yhat, eps, dearer)) best = k * 1e-6;
    return yhat + (1.0 - best) * (7.0 - yhat) - best * (yhat - 3.0);
}

}  // namespace

TEST("factors and inverses are those of dense algebra, in every lane") {
    using V = Lanes<2, 2>;
    for (Index size : {1, 2, 3, 4, 7}) {
        std::vector<V> matrix(std::size_t(size * size)), inverse(matrix), original;
        for (Index i = 0; i < size; ++i)
            for (Index k = 0; k < size; ++k)
                for (int lane = 0; lane < V::kLanes; ++lane)
                    matrix[std::size_t(i * size + k)].set(
                        lane, (i == k ? 3.0 + lane : 0.0) + 1.0 / double(1 + i + k + lane));
        original = matrix;
        invert(matrix.data(), size, 1e-12, inverse.data());
        for (Index i = 0; i < size; ++i) {
            std::vector<V> column(std::size_t(size), V(0.0)), product(column);
            for (Index k = 0; k < size; ++k) column[std::size_t(k)] = inverse[std::size_t(k * size + i)];
            add_product(original.data(), size, column.data(), product.data());
            back_solve(matrix.data(), size, product.data());
            for (int lane = 0; lane < V::kLanes; ++lane)
                for (Index k = 0; k < size; ++k)
                    CHECK_NEAR(product[std::size_t(k)].get(lane), column[std::size_t(k)].get(lane), 1e-14);
        }
    }
}

TEST("the end of the central path is the optimum") {
    Part part(gap_in_the_middle());
    const std::vector<double> yhat{3.5, 4.5, 4.9, 5.0, 5.01, 5.3, 6.9};
    for (double eps : {0.01, 0.1}) {
        const Solved found = run(part, yhat, eps);
        for (std::size_t s = 0; s < yhat.size(); ++s) {
            CHECK(found.solved[s]);
            CHECK_NEAR(found.y[s], best_point(yhat[s], eps), 1e-5);
        }
    }
}

TEST("a product is chosen by its price, too, and the derivative has prices") {
    Part part(gap_in_the_middle());
    const std::vector<double> yhat{3.6, 4.3, 4.0, 5.4, 5.0}, price{3.0, 0.0, 1.4, 0.0, 0.0, 1e6, 1e6, 1e6 + 0.8, 7.0, 7.0};
    const double h = 1e-5;
    const Solved found = run(part, yhat, 0.1, {}, price);
    for (std::size_t s = 0; s < yhat.size(); ++s)
        CHECK_NEAR(found.y[s], best_point(yhat[s], 0.1, price[2 * s] - price[2 * s + 1]), 1e-5);
    for (std::size_t product : {0, 1}) {
        std::vector<double> up = price, down = price;
        for (std::size_t s = 0; s < yhat.size(); ++s) {
            up[2 * s + product] += h;
            down[2 * s + product] -= h;
        }
        const Solved above = run(part, yhat, 0.1, {}, up), below = run(part, yhat, 0.1, {}, down);
        for (std::size_t s = 0; s < yhat.size(); ++s)
            CHECK_NEAR(found.to_price[2 * s + product], (above.y[s] - below.y[s]) / (2.0 * h), 1e-3);
    }
    // One price for all products changes nothing.
    CHECK_NEAR(found.y[4], run(part, {5.0}, 0.1).y[0], 0.0);
}

TEST("the derivative is that of differences") {
    Part part(gap_in_the_middle());
    const std::vector<double> yhat{4.0, 4.99, 5.0, 5.02, 6.0};
    const Solved found = run(part, yhat, 0.1);
    std::vector<double> up = yhat, down = yhat;
    for (std::size_t s = 0; s < yhat.size(); ++s) {
        up[s] += 1e-5;
        down[s] -= 1e-5;
    }
    const Solved above = run(part, up, 0.1), below = run(part, down, 0.1);
    for (std::size_t s = 0; s < yhat.size(); ++s)
        CHECK_NEAR(found.to_yhat[s], (above.y[s] - below.y[s]) / 2e-5, 1e-3);
}

TEST("answers do not depend on the CPU, on threads, or on the samples beside them") {
    Part part(gap_in_the_middle());
    std::vector<double> yhat;
    for (int k = 0; k < 37; ++k) yhat.push_back(3.1 + 0.1 * k);
    choose_cpu(Cpu::baseline);
    const Solved wanted = run(part, yhat, 0.02);
    for (Cpu cpu : kCpus) {
        if (!built(cpu) || !supported(cpu)) continue;
        choose_cpu(cpu);
        for (Index threads : {1, 3}) {
            const Solved found = run(part, yhat, 0.02, {threads, true});
            CHECK(found.y == wanted.y && found.path == wanted.path);
            CHECK(found.to_yhat == wanted.to_yhat && found.to_bound == wanted.to_bound);
        }
        for (std::size_t s = 0; s < yhat.size(); ++s) {
            const Solved alone = run(part, {yhat[s]}, 0.02);
            CHECK(alone.y[0] == wanted.y[s] && alone.to_yhat[0] == wanted.to_yhat[s]);
        }
    }
}
