// Sums of lines: what they say, on every CPU the same to the last bit.
#include <cstring>
#include <vector>

#include "check.hpp"
#include "gdpnet/sums.hpp"

using namespace gdpnet;

namespace {

constexpr Index kStride = 12, kMost = 9;

// Numbers that are no multiples of each other, the same on every run.
std::vector<double> numbers(Index count, double seed) {
    std::vector<double> made;
    for (Index k = 0; k < count; ++k) made.push_back(1.0 / (seed + double((7 * k) % 31)) - 0.05);
    return made;
}

// All four sums of `count` lines of `length` numbers, one result behind the other.
std::vector<double> all_sums(const Sums& sums, Index count, Index length) {
    const std::vector<double> lines = numbers(kMost * kStride, 1.5), share = numbers(kStride, 2.5), from = numbers(kStride, 3.5);
    std::vector<const double*> line;
    for (Index k = 0; k < count; ++k) line.push_back(lines.data() + k * kStride);
    std::vector<double> added(kStride), taken(kStride), moved = numbers(kStride, 4.5), square = lines;
    sums.add_up(share.data(), lines.data(), kStride, count, added.data(), length);
    sums.take_off(from.data(), share.data(), line.data(), count, taken.data(), length);
    sums.move(moved.data(), 0.3, from.data(), share.data(), line.data(), count, length);
    sums.add_square(square.data(), kStride, count, 0.7, share.data());
    for (const auto* part : {&taken, &moved, &square}) added.insert(added.end(), part->begin(), part->end());
    return added;
}

}  // namespace

TEST("sums are what they say") {
    for (Index count = 0; count <= kMost; ++count) {
        for (Index length = 1; length <= kStride; ++length) {
            const std::vector<double> lines = numbers(kMost * kStride, 1.5), share = numbers(kStride, 2.5),
                                      from = numbers(kStride, 3.5), before = numbers(kStride, 4.5);
            const std::vector<double> found = all_sums(kBaselineSums, count, length);
            for (Index i = 0; i < length; ++i) {
                double sum = 0.0;
                for (Index k = 0; k < count; ++k) sum += share[k] * lines[k * kStride + i];
                CHECK_NEAR(found[i], sum, 1e-14);
                CHECK_NEAR(found[kStride + i], from[i] - sum, 1e-14);
                CHECK_NEAR(found[2 * kStride + i], before[i] - 0.3 * (from[i] - sum), 1e-14);
            }
            for (Index k = 0; k < count; ++k)
                for (Index i = 0; i < count; ++i)
                    CHECK_NEAR(found[(3 + k) * kStride + i], lines[k * kStride + i] + 0.7 * share[k] * share[i], 1e-14);
        }
    }
}

TEST("sums are the same on every CPU, to the last bit") {
#if defined(GDPNET_WIDE)
    if (!supported(Cpu::avx2)) return;
    for (Index count = 0; count <= kMost; ++count) {
        for (Index length = 1; length <= kStride; ++length) {
            const std::vector<double> narrow = all_sums(kBaselineSums, count, length), wide = all_sums(kAvx2Sums, count, length);
            CHECK(std::memcmp(narrow.data(), wide.data(), narrow.size() * sizeof(double)) == 0);
        }
    }
#endif
}
