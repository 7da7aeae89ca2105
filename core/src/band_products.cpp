#include "gdpnet/band/products.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet::band {

Products::Products(Index places, Index columns, Index booleans)
    : intercept(std::size_t(places)),
      slope(std::size_t(places)),
      limit(std::size_t(places)),
      weight(std::size_t(places)),
      paid(std::size_t(places)),
      point(places, columns),
      kind(places, columns),
      row(places, columns, kNoRow),
      state(places, booleans) {}

void Products::copy(Index to, Index from) {
    intercept[to] = intercept[from];
    slope[to] = slope[from];
    limit[to] = limit[from];
    paid[to] = paid[from];
    std::ranges::copy(point[from], point[to].begin());
    std::ranges::copy(kind[from], kind[to].begin());
    std::ranges::copy(row[from], row[to].begin());
    std::ranges::copy(state[from], state[to].begin());
}

bool Products::same_point(Index p, Index q) {
    const auto one = point[p], other = point[q];
    for (std::size_t j = 0; j < one.size(); ++j) {
        if (std::abs(one[j] - other[j]) > kSamePoint) return false;
    }
    return true;
}

void Products::keep_if_distinct(Index cap) {
    const Index p = count;
    Index farthest = 0;
    for (Index q = 0; q < p; ++q) {
        if (same_point(p, q)) {
            if (paid[p] < paid[q]) copy(q, p);
            return;
        }
        if (intercept[q] > intercept[farthest]) farthest = q;
    }
    if (count < cap) {
        ++count;
    } else if (intercept[p] < intercept[farthest]) {
        copy(farthest, p);
    }
}

void Products::make_distinct(Index cap) {
    const Index listed = count + 1;
    count = 0;
    for (Index p = 0; p < listed; ++p) {
        if (p > count) copy(count, p);
        keep_if_distinct(cap);
    }
}

void Products::fill() {
    for (Index p = 0; p < count; ++p) weight[p] = 1.0;
    double price = 0.0;
    Index kept = 0;
    for (bool dropped = true; dropped;) {
        double total = 1.0, conductance = 0.0;
        kept = 0;
        for (Index p = 0; p < count; ++p) {
            if (weight[p] > 0.0) {
                total += intercept[p] / slope[p];
                conductance += 1.0 / slope[p];
                ++kept;
            }
        }
        price = total / conductance;
        dropped = false;
        for (Index p = 0; p < count; ++p) {
            if (weight[p] > 0.0 && intercept[p] >= price && kept > 1) {
                weight[p] = 0.0;
                dropped = true;
            }
        }
    }
    if (kept == 1) return;
    for (Index p = 0; p < count; ++p) {
        if (weight[p] > 0.0) weight[p] = (price - intercept[p]) / slope[p];
    }
}

void Band::append(Products& products, Index p, const std::vector<Index>& priced_booleans) {
    for (const Index k : priced_booleans) pays.push_back(products.state(p, k) == 1);
    slope.push_back(products.slope[p]);
    weight.push_back(products.weight[p]);
    point.insert(point.end(), products.point[p].begin(), products.point[p].end());
    kind.insert(kind.end(), products.kind[p].begin(), products.kind[p].end());
    row.insert(row.end(), products.row[p].begin(), products.row[p].end());
}

void Band::append(const Band& other) {
    slope.insert(slope.end(), other.slope.begin(), other.slope.end());
    weight.insert(weight.end(), other.weight.begin(), other.weight.end());
    point.insert(point.end(), other.point.begin(), other.point.end());
    kind.insert(kind.end(), other.kind.begin(), other.kind.end());
    row.insert(row.end(), other.row.begin(), other.row.end());
    pays.insert(pays.end(), other.pays.begin(), other.pays.end());
}

}  // namespace gdpnet::band
