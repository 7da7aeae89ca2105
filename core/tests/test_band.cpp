// Products of the regularised program, their weights and their derivative.
#include <algorithm>
#include <array>

#include "check.hpp"
#include "gdpnet/band/backward.hpp"
#include "gdpnet/band/products.hpp"

using namespace gdpnet;
using namespace gdpnet::band;

namespace {

// Products of one column, with these prices.
Products with_prices(std::vector<double> intercept, std::vector<double> slope) {
    const auto count = Index(intercept.size());
    Products found(count + 1, 1, 0);
    found.count = count;
    for (Index p = 0; p < count; ++p) {
        found.intercept[p] = intercept[p];
        found.slope[p] = slope[p];
    }
    return found;
}

// Puts a product at the next place, as the listing does.
void write(Products& products, double distance, double point) {
    products.intercept[products.count] = distance;
    products.point(products.count, 0) = point;
}

// Two outputs and one row a z <= b for each of the given pairs.
Rows rows_of(std::vector<std::array<double, 2>> coefficients) {
    Rows rows;
    rows.outputs = 2;
    rows.lower = {-10.0, -10.0};
    rows.upper = {10.0, 10.0};
    rows.integer = {0, 0};
    rows.start = {0};
    for (const auto& row : coefficients) {
        for (Index j = 0; j < 2; ++j) {
            rows.column.push_back(j);
            rows.coefficient.push_back(row[j]);
        }
        rows.start.push_back(Index(rows.column.size()));
        rows.largest.push_back(std::max(std::abs(row[0]), std::abs(row[1])));
        rows.scale.push_back(1.0);
        rows.equality.push_back(0);
        rows.place.push_back(-1);
    }
    return rows;
}

struct Answer {
    std::vector<double> to_yhat, to_bound;
};

Answer derivative(const Rows& rows, const Band& band, std::vector<double> yhat, std::vector<double> bound,
                  std::vector<double> weights, double eps, std::vector<double> gradient) {
    Answer found{gradient, std::vector<double>(bound.size())};
    Adjoint adjoint(rows);
    const Pull pull{{nullptr, 0, 2}, bound, yhat, gradient, found.to_yhat, found.to_bound, {nullptr, 0, 2}};
    adjoint.sample(band, 0, weights, eps, pull);
    return found;
}

}  // namespace

TEST("weights of one product") {
    auto products = with_prices({3.0}, {0.5});
    products.fill();
    CHECK(products.weight[0] == 1.0);
}

TEST("weights have the same price and sum to 1") {
    auto products = with_prices({1.0, 1.1, 1.05}, {0.5, 0.25, 1.0});
    products.fill();
    double total = 0.0;
    for (Index p = 0; p < 3; ++p) {
        CHECK(products.weight[p] > 0.0);
        CHECK_NEAR(products.intercept[p] + products.slope[p] * products.weight[p],
                   products.intercept[0] + products.slope[0] * products.weight[0], 1e-14);
        total += products.weight[p];
    }
    CHECK_NEAR(total, 1.0, 1e-14);
}

TEST("products that are too far have no weight") {
    auto products = with_prices({1.0, 2.0, 1.1}, {0.5, 0.5, 0.5});
    products.fill();
    CHECK(products.weight[1] == 0.0);
    CHECK_NEAR(products.weight[0], 0.6, 1e-14);
    CHECK_NEAR(products.weight[2], 0.4, 1e-14);
}

TEST("beyond the cap the nearest distinct products are kept") {
    Products products(3, 1, 0);
    write(products, 3.0, 3.0), ++products.count;
    write(products, 3.0, 3.0), ++products.count;  // the same vertex once more
    write(products, 1.0, -1.0);
    products.make_distinct(2);
    CHECK(products.count == 2);
    write(products, 2.0, 2.0);
    products.keep_if_distinct(2);  // nearer than the first, which it replaces
    CHECK(products.count == 2);
    CHECK(products.point(0, 0) == 2.0);
    CHECK(products.point(1, 0) == -1.0);
    write(products, 5.0, 5.0);
    products.keep_if_distinct(2);  // too far
    CHECK(products.point(0, 0) == 2.0);
}

TEST("the derivative at a vertex is that of its rows") {
    // z1 = b on one tight row 2 z1 <= b', the other column follows the prediction.
    const Rows rows = rows_of({{1.0, 0.0}});
    Products products(1, 2, 0);
    products.slope[0] = 1.0, products.weight[0] = 1.0;
    products.point(0, 0) = -2.0;
    products.kind(0, 0) = Held::free_below, products.kind(0, 1) = Held::at_kink;
    products.row(0, 0) = 0;
    Band band;
    band.columns = 2;
    band.append(products, 0, {});
    band.start = {0, 1};
    const auto found = derivative(rows, band, {3.0, 0.5}, {1.0}, {1.0, 1.0}, 1e-2, {0.7, -0.3});
    CHECK_NEAR(found.to_yhat[0], 0.0, 1e-15);
    CHECK_NEAR(found.to_yhat[1], -0.3, 1e-15);
    CHECK_NEAR(found.to_bound[0], 0.7, 1e-15);
}

TEST("the derivative of a mixture, against differences of the solution in closed form") {
    // Two products z1 <= b0 and z1 >= b1 of one column: y = yhat + sum lambda_k (b_k - yhat).
    Rows rows = rows_of({{1.0, 0.0}, {-1.0, 0.0}});
    const double eps = 0.3;
    const auto solution = [&](double yhat, double low, double high, Products& products) {
        const double points[] = {low - yhat, high - yhat};
        for (Index k = 0; k < 2; ++k) {
            products.point(k, 0) = points[k];
            products.intercept[k] = std::abs(points[k]);
            products.slope[k] = eps * (1.0 + 2.0 * points[k] * points[k]);
            products.kind(k, 0) = k == 0 ? Held::free_below : Held::free_above;
            products.kind(k, 1) = Held::at_kink;
            products.row(k, 0) = std::int32_t(k);
        }
        products.count = 2;
        products.fill();
        return yhat + products.weight[0] * points[0] + products.weight[1] * points[1];
    };
    Products products(2, 2, 0), other(2, 2, 0);
    solution(0.1, -1.0, 1.0, products);
    CHECK(products.weight[0] > 0.0 && products.weight[1] > 0.0);
    Band band;
    band.columns = 2;
    for (Index k = 0; k < 2; ++k) band.append(products, k, {});
    band.start = {0, 2};
    const auto found = derivative(rows, band, {0.1, 0.0}, {-1.0, -1.0}, {1.0, 1.0}, eps, {1.0, 0.0});
    const double h = 1e-6;
    const auto difference = [&](double yhat, double low, double high) {
        return (solution(0.1 + yhat * h, -1.0 + low * h, 1.0 + high * h, other) -
                solution(0.1 - yhat * h, -1.0 - low * h, 1.0 - high * h, other)) / (2.0 * h);
    };
    CHECK_NEAR(found.to_yhat[0], difference(1.0, 0.0, 0.0), 1e-7);
    CHECK_NEAR(found.to_bound[0], difference(0.0, 1.0, 0.0), 1e-7);
    CHECK_NEAR(found.to_bound[1], difference(0.0, 0.0, -1.0), 1e-7);
}
