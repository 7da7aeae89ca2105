// The sums for one kind of lanes: included where they are compiled for a CPU.
#pragma once

#include <cstring>

#include "gdpnet/blocks/lanes.hpp"
#include "gdpnet/sums.hpp"

namespace gdpnet {

// Four numbers of V, whatever registers they are in.
template <class V>
struct Abreast {
    static constexpr Index kFour = 4;
    static_assert(V::kLanes == kFour);

    static V at(const double* from) {
        V found;
        std::memcpy(&found, from, sizeof found);
        return found;
    }
    static void put(const V& numbers, double* to) { std::memcpy(to, &numbers, sizeof numbers); }

    static void add_up(const double* share, const double* lines, Index stride, Index count, double* found, Index length) {
        for (Index i = 0; i < length; i += kFour) {
            V sum = 0.0;
            const double* line = lines + i;
            for (Index k = 0; k < count; ++k, line += stride) sum += V(share[k]) * at(line);
            put(sum, found + i);
        }
    }

    static void take_off(const double* from, const double* share, const double* const* line, Index count, double* found,
                         Index length) {
        for (Index i = 0; i < length; i += kFour) {
            V left = at(from + i);
            for (Index k = 0; k < count; ++k) left -= V(share[k]) * at(line[k] + i);
            put(left, found + i);
        }
    }

    static void move(double* to, double times, const double* own, const double* share, const double* const* line,
                     Index count, Index length) {
        const V all = times;
        Index i = 0;
        for (; i + kFour < length; i += 2 * kFour) {  // two by two: shares are read half as often
            V one = at(own + i), two = at(own + i + kFour);
            for (Index k = 0; k < count; ++k) {
                const V each = share[k];
                const double* from = line[k] + i;
                one -= each * at(from);
                two -= each * at(from + kFour);
            }
            put(at(to + i) - all * one, to + i);
            put(at(to + i + kFour) - all * two, to + i + kFour);
        }
        if (i >= length) return;
        V one = at(own + i);
        for (Index k = 0; k < count; ++k) one -= V(share[k]) * at(line[k] + i);
        put(at(to + i) - all * one, to + i);
    }

    static void add_square(double* lines, Index stride, Index count, double times, const double* share) {
        for (Index k = 0; k < count; ++k, lines += stride) {
            const V each = times * share[k];
            for (Index i = 0; i < count; i += kFour) put(at(lines + i) + each * at(share + i), lines + i);
        }
    }
};

template <class V>
constexpr Sums sums_of() {
    return {Abreast<V>::add_up, Abreast<V>::take_off, Abreast<V>::move, Abreast<V>::add_square};
}

}  // namespace gdpnet
