#include "gdpnet/component.hpp"

#include <algorithm>

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

void Rows::add_cuts() {
    if (curves.none()) return;
    curves.place.assign(equality.size(), -1);
    for (Index c = 0; c < curves.count(); ++c) curves.place[curves.row[c]] = c;
    curves.first_cut = {count()};
    for (Index c = 0; c < curves.count(); ++c) {
        std::vector<Index> touched;
        const auto touch = [&](Index i) { touched.insert(touched.end(), column.begin() + start[i], column.begin() + start[i + 1]); };
        touch(curves.row[c]);
        for (Index k = curves.start[c]; k < curves.start[c + 1]; ++k)
            for (Index a = curves.curve[k].first; a < curves.curve[k].last; ++a) touch(curves.argument[a]);
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        if (touched.empty()) touched.push_back(0);
        // A row with one entry would become a bound, which no step could take back: it gets a second one.
        if (touched.size() == 1) touched.push_back(touched.front());
        const Index cuts = Index(touched.size()) + kSpareCuts;
        for (Index k = 0; k < cuts; ++k) {
            column.insert(column.end(), touched.begin(), touched.end());
            start.push_back(Index(column.size()));
        }
        curves.first_cut.push_back(curves.first_cut.back() + cuts);
    }
    const auto all = std::size_t(curves.first_cut.back());
    coefficient.resize(column.size(), 0.0);
    largest.resize(all, 0.0);
    scale.resize(all, 1.0);
    equality.resize(all, 0);
    place.resize(all, -1);
    curves.place.resize(all, -1);
}

void mark_enforced(const Rows& rows, const Logic& logic, Vector<const std::int8_t> assignment, Flags& marks) {
    std::fill(marks.begin(), marks.end(), std::uint8_t(0));
    for (Index i : rows.global_rows) marks[i] = 1;
    for (Index k = 0; k < logic.booleans(); ++k) {
        if (assignment[k] == 1) {
            for (Index e = logic.true_start[k]; e < logic.true_start[k + 1]; ++e) marks[logic.true_row[e]] = 1;
        } else if (assignment[k] == -1 && logic.tied[k]) {
            for (Index e = logic.false_start[k]; e < logic.false_start[k + 1]; ++e) marks[logic.false_row[e]] = 1;
        }
    }
}

}  // namespace gdpnet
