// Small dense matrices of lanes.
//
// Every entry is a sum with one order of its terms, and each term waits for the one before. Entries
// that do not need each other are therefore summed together, `kTile` at a time.
#pragma once

#include "gdpnet/arrays.hpp"
#include "gdpnet/blocks/lanes.hpp"

namespace gdpnet::blocks {

constexpr int kTile = 4;

// Entries (i .. i + T - 1, k) of a matrix less the products of columns before k of their rows with
// what stands above (k, k); they are written across the diagonal, into line k.
template <int T, int N>
inline void reduce(Lanes<N>* matrix, Index size, Index i, Index k) {
    const Lanes<N>* line[T];
    Lanes<N> sum[T];
    for (int t = 0; t < T; ++t) {
        line[t] = matrix + (i + t) * size;
        sum[t] = line[t][k];
    }
    for (Index e = 0; e < k; ++e) {
        const Lanes<N> above = matrix[e * size + k];
        for (int t = 0; t < T; ++t) sum[t] -= line[t][e] * above;
    }
    for (int t = 0; t < T; ++t) matrix[k * size + i + t] = sum[t];
}

// L D L' of a symmetric matrix, whose lower triangle is given, without pivots below a number.
// L stands below the diagonal, 1 / D on it, and D L' above it.
template <int N>
inline void factorise(Lanes<N>* matrix, Index size, double smallest) {
    for (Index k = 0; k < size; ++k) {
        Index i = k;
        for (; i + kTile <= size; i += kTile) reduce<kTile>(matrix, size, i, k);
        if (i + 2 <= size) {
            reduce<2>(matrix, size, i, k);
            i += 2;
        }
        if (i < size) reduce<1>(matrix, size, i, k);
        const Lanes<N> pivot = 1.0 / most(Lanes<N>(smallest), matrix[k * size + k]);
        matrix[k * size + k] = pivot;
        for (i = k + 1; i < size; ++i) matrix[i * size + k] = matrix[k * size + i] * pivot;
    }
}

// Entries (k .. k + T - 1, i) of the transpose of L^-1, from those left of column i.
template <int T, int N>
inline void invert_entries(const Lanes<N>* matrix, Index size, Index i, Index k, Lanes<N>* target) {
    const Lanes<N>* factors = matrix + i * size;
    Lanes<N>* line[T];
    Lanes<N> sum[T];
    for (int t = 0; t < T; ++t) {
        line[t] = target + (k + t) * size;
        sum[t] = 0.0 - factors[k + t];
        for (Index e = k + t + 1; e < k + T; ++e) sum[t] -= factors[e] * line[t][e];
    }
    for (Index e = k + T; e < i; ++e) {
        const Lanes<N> factor = factors[e];
        for (int t = 0; t < T; ++t) sum[t] -= factor * line[t][e];
    }
    const Lanes<N> pivot = factors[i];
    for (int t = 0; t < T; ++t) {
        line[t][i] = sum[t];
        target[i * size + k + t] = sum[t] * pivot;
    }
}

// Entries (i .. i + T - 1, k) of the product of that transpose with D^-1 L^-1, in place.
template <int T, int N>
inline void multiply_entries(Lanes<N>* target, Index size, Index i, Index k) {
    const Lanes<N> pivot = target[k * size + k];
    Lanes<N>* line[T];
    Lanes<N> sum[T];
    for (int t = 0; t < T; ++t) {
        line[t] = target + (i + t) * size;
        sum[t] = i + t < k ? pivot * line[t][k] : pivot;
    }
    for (Index e = k + 1; e < size; ++e) {
        const Lanes<N> below = target[e * size + k];
        for (int t = 0; t < T; ++t) sum[t] += line[t][e] * below;
    }
    for (int t = 0; t < T; ++t) line[t][k] = sum[t];
}

// Inverse of such a matrix, which is overwritten by its factors.
template <int N>
inline void invert(Lanes<N>* matrix, Index size, double smallest, Lanes<N>* target) {
    factorise(matrix, size, smallest);
    for (Index i = 0; i < size; ++i) {  // K = L^-1: its transpose above the diagonal, D^-1 K on and below it
        target[i * size + i] = matrix[i * size + i];
        Index k = 0;
        for (; k + kTile <= i; k += kTile) invert_entries<kTile>(matrix, size, i, k, target);
        if (k + 2 <= i) {
            invert_entries<2>(matrix, size, i, k, target);
            k += 2;
        }
        if (k < i) invert_entries<1>(matrix, size, i, k, target);
    }
    for (Index k = 0; k < size; ++k) {
        Index i = 0;
        for (; i + kTile <= k + 1; i += kTile) multiply_entries<kTile>(target, size, i, k);
        if (i + 2 <= k + 1) {
            multiply_entries<2>(target, size, i, k);
            i += 2;
        }
        if (i <= k) multiply_entries<1>(target, size, i, k);
    }
    for (Index i = 0; i < size; ++i)
        for (Index k = 0; k < i; ++k) target[i * size + k] = target[k * size + i];
}

template <int T, int N>
inline void add_entries(const Lanes<N>* matrix, Index size, const Lanes<N>* vector, Lanes<N>* total) {
    Lanes<N> sum[T];
    for (int t = 0; t < T; ++t) sum[t] = total[t];
    for (Index k = 0; k < size; ++k) {
        const Lanes<N> factor = vector[k];
        for (int t = 0; t < T; ++t) sum[t] += matrix[t * size + k] * factor;
    }
    for (int t = 0; t < T; ++t) total[t] = sum[t];
}

// Adds `matrix vector` to `total`.
template <int N>
inline void add_product(const Lanes<N>* matrix, Index size, const Lanes<N>* vector, Lanes<N>* total) {
    Index i = 0;
    for (; i + kTile <= size; i += kTile) add_entries<kTile>(matrix + i * size, size, vector, total + i);
    if (i + 2 <= size) {
        add_entries<2>(matrix + i * size, size, vector, total + i);
        i += 2;
    }
    if (i < size) add_entries<1>(matrix + i * size, size, vector, total + i);
}

// Solves with the factors, in place.
template <int N>
inline void back_solve(const Lanes<N>* factors, Index size, Lanes<N>* vector) {
    for (Index i = 0; i < size; ++i) {
        Lanes<N> total = vector[i];
        for (Index k = 0; k < i; ++k) total -= factors[i * size + k] * vector[k];
        vector[i] = total;
    }
    for (Index i = size - 1; i >= 0; --i) {
        Lanes<N> total = vector[i] * factors[i * size + i];
        for (Index k = i + 1; k < size; ++k) total -= factors[k * size + i] * vector[k];
        vector[i] = total;
    }
}

}  // namespace gdpnet::blocks
