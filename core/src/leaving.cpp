#include "gdpnet/leaving.hpp"

#include <cstring>

#include "gdpnet/given.hpp"

namespace gdpnet {

namespace {

using Hash = std::uint64_t;

Hash mixed(Hash hash, const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t at = 0; at < size; at += sizeof(Hash)) {
        Hash part = 0;
        std::memcpy(&part, bytes + at, std::min(sizeof(Hash), size - at));
        hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

}  // namespace

Patterns::Patterns(const Batch& batch) : pattern(std::size_t(batch.size())) {
    const std::size_t active = std::size_t(batch.active.width) * sizeof(bool);
    const std::size_t bound = std::size_t(batch.bound.width) * sizeof(double);
    const std::size_t varying = std::size_t(batch.varying.lines * batch.varying.width) * sizeof(double);
    const auto same = [&](Index s, Index t) {
        return std::memcmp(batch.active[s].data(), batch.active[t].data(), active) == 0 &&
               std::memcmp(batch.bound[s].data(), batch.bound[t].data(), bound) == 0 &&
               (varying == 0 || std::memcmp(batch.varying[s].data, batch.varying[t].data, varying) == 0);
    };
    std::size_t room = 16;
    while (room < 2 * pattern.size()) room *= 2;
    std::vector<Index> kinds(room, -1);  // open addressing
    for (Index s = 0; s < batch.size(); ++s) {
        Hash hash = mixed(mixed(0, batch.active[s].data(), active), batch.bound[s].data(), bound);
        if (varying > 0) hash = mixed(hash, batch.varying[s].data, varying);
        std::size_t at = std::size_t(hash) & (room - 1);
        while (kinds[at] >= 0 && !same(s, first[std::size_t(kinds[at])])) at = (at + 1) & (room - 1);
        if (kinds[at] < 0) {
            kinds[at] = Index(first.size());
            first.push_back(s);
        }
        pattern[std::size_t(s)] = kinds[at];
    }
}

}  // namespace gdpnet
