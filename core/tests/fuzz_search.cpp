// Fuzz target: random small problems, the search's answer compared with plain enumeration.
//
// Bytes are read as a problem of at most three columns with whole numbers everywhere: rows, right sides, bounds,
// predictions. Ties, parallel rows, empty and degenerate polyhedra are the rule with such numbers, not the exception,
// and the enumeration is exact: over all values of the booleans, over all values of whole columns, over all vertices
// that rows, bounds and the prediction's coordinates make, by Cramer's rule in integers. The distance is convex and
// piecewise linear, columns are bounded, so its least value is taken at one of these vertices.
//
//   make fuzz-core; a finding is a file that build/fuzz/fuzz_search takes as its argument.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "gdpnet/exact.hpp"

using namespace gdpnet;

namespace {

constexpr double kSame = 1e-7;  // far below what whole numbers of this size can differ by, far above rounding

class Bytes {
public:
    Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
    // A number from `least` to `most`; the least one at the end.
    int number(int least, int most) {
        const int byte = at_ < size_ ? data_[at_++] : 0;
        return least + byte % (most - least + 1);
    }
    bool coin() { return number(0, 1) == 1; }

private:
    const std::uint8_t* data_;
    std::size_t size_;
    std::size_t at_ = 0;
};

struct Line {
    std::array<int, 3> a{};
    int b = 0;
    bool equality = false;
    bool varying = false;  // whether its coefficients are handed over with the sample
};

struct Boolean {
    bool tied = false;
    std::vector<int> when_true, when_false;
};

struct Clause {
    std::vector<int> literals;
    int guard = -1;
    bool active = true;
};

struct Problem {
    int n = 1, outputs = 1;
    std::array<int, 3> lower{}, upper{}, yhat{}, weight{};
    std::array<bool, 3> whole{};
    std::vector<Line> lines;
    std::vector<int> global_rows;
    std::vector<Boolean> booleans;
    std::vector<Clause> clauses;
};

std::vector<int> some_rows(Bytes& bytes, int lines, int most) {
    std::vector<int> chosen;
    for (int count = bytes.number(0, most); count > 0; --count) chosen.push_back(bytes.number(0, lines - 1));
    return chosen;
}

Problem read(Bytes& bytes) {
    Problem made;
    made.n = bytes.number(1, 3);
    made.outputs = bytes.number(1, made.n);
    for (int j = 0; j < made.n; ++j) {
        made.whole[j] = bytes.number(0, 3) == 3;
        made.lower[j] = bytes.number(-6, 2);
        made.upper[j] = made.lower[j] + bytes.number(0, made.whole[j] ? 4 : 12);
        made.yhat[j] = bytes.number(-9, 9);
        made.weight[j] = bytes.number(1, 3);
    }
    const int lines = bytes.number(1, 8);
    for (int i = 0; i < lines; ++i) {
        Line line;
        for (int j = 0; j < made.n; ++j) line.a[j] = bytes.number(-3, 3);
        line.b = bytes.number(-12, 12);
        line.equality = bytes.number(0, 5) == 5;
        line.varying = bytes.number(0, 5) == 5;
        made.lines.push_back(line);
    }
    made.global_rows = some_rows(bytes, lines, 2);
    for (int clauses = bytes.number(0, 3); clauses > 0; --clauses) {
        Clause clause;
        const int known = int(made.booleans.size());
        if (known > 0 && bytes.number(0, 3) == 3) clause.guard = bytes.number(0, known - 1);
        clause.active = bytes.number(0, 5) < 5;
        for (int width = bytes.number(1, 3); width > 0; --width) {
            // A boolean of its own, or one that an earlier clause speaks of and that is tied to it thereby.
            const int k = bytes.number(0, 3) == 3 ? bytes.number(0, int(made.booleans.size())) : int(made.booleans.size());
            if (k == int(made.booleans.size())) {
                made.booleans.push_back({bytes.number(0, 3) == 3, some_rows(bytes, lines, 2), {}});
                if (made.booleans[k].tied && bytes.coin()) made.booleans[k].when_false = some_rows(bytes, lines, 1);
            } else {
                made.booleans[k].tied = true;
            }
            const bool negative = made.booleans[k].tied && bytes.coin();
            clause.literals.push_back(negative ? -(k + 1) : k + 1);
        }
        made.clauses.push_back(clause);
    }
    // Tied booleans have one of two values, which matters where both ask for something.
    for (int k = 0; k < int(made.booleans.size()); ++k)
        if (made.booleans[k].tied) made.clauses.push_back({{k + 1, -(k + 1)}, -1, true});
    return made;
}

// ---- enumeration ------------------------------------------------------------------------------------------------

using Long = long long;

struct Plane {
    std::array<Long, 3> a{};
    Long b = 0;
};

struct Enumeration {
    const Problem& problem;
    std::map<std::uint32_t, double> known;  // least distance for a set of rows

    double best() {
        std::vector<int> value(problem.booleans.size(), 0);
        return over_booleans(value, 0);
    }

    double over_booleans(std::vector<int>& value, std::size_t k) {
        if (k == value.size()) return clauses_hold(value) ? with_rows(rows_of(value)) : kInfinity;
        double least = kInfinity;
        for (int v : {1, problem.booleans[k].tied ? -1 : 0}) {
            value[k] = v;
            least = std::min(least, over_booleans(value, k + 1));
        }
        return least;
    }

    bool clauses_hold(const std::vector<int>& value) const {
        for (const Clause& clause : problem.clauses) {
            if (!clause.active || (clause.guard >= 0 && value[std::size_t(clause.guard)] != 1)) continue;
            bool holds = false;
            for (int literal : clause.literals) holds |= value[std::size_t(std::abs(literal) - 1)] == (literal > 0 ? 1 : -1);
            if (!holds) return false;
        }
        return true;
    }

    std::uint32_t rows_of(const std::vector<int>& value) const {
        std::uint32_t rows = 0;
        for (int i : problem.global_rows) rows |= 1u << i;
        for (std::size_t k = 0; k < value.size(); ++k) {
            if (value[k] == 1)
                for (int i : problem.booleans[k].when_true) rows |= 1u << i;
            if (value[k] == -1)
                for (int i : problem.booleans[k].when_false) rows |= 1u << i;
        }
        return rows;
    }

    double with_rows(std::uint32_t rows) {
        const auto found = known.find(rows);
        if (found != known.end()) return found->second;
        std::array<int, 3> fixed{};
        return known[rows] = over_whole_columns(rows, fixed, 0);
    }

    double over_whole_columns(std::uint32_t rows, std::array<int, 3>& fixed, int j) {
        if (j == problem.n) return over_vertices(rows, fixed);
        if (!problem.whole[j]) return over_whole_columns(rows, fixed, j + 1);
        double least = kInfinity;
        for (int v = problem.lower[j]; v <= problem.upper[j]; ++v) {
            fixed[j] = v;
            least = std::min(least, over_whole_columns(rows, fixed, j + 1));
        }
        return least;
    }

    double over_vertices(std::uint32_t rows, const std::array<int, 3>& fixed) const {
        std::vector<Plane> planes;
        const auto coordinate = [&](int j, int value) {
            Plane plane;
            plane.a[j] = 1;
            plane.b = value;
            planes.push_back(plane);
        };
        for (int j = 0; j < 3; ++j) {
            if (j >= problem.n) {
                coordinate(j, 0);  // columns that there are not
            } else if (problem.whole[j]) {
                coordinate(j, fixed[j]);
            } else {
                coordinate(j, problem.lower[j]);
                coordinate(j, problem.upper[j]);
                if (j < problem.outputs) coordinate(j, problem.yhat[j]);
            }
        }
        for (std::size_t i = 0; i < problem.lines.size(); ++i) {
            const Line& line = problem.lines[i];
            if (rows >> i & 1) planes.push_back({{line.a[0], line.a[1], line.a[2]}, line.b});
        }
        double least = kInfinity;
        for (std::size_t p = 0; p < planes.size(); ++p)
            for (std::size_t q = p + 1; q < planes.size(); ++q)
                for (std::size_t r = q + 1; r < planes.size(); ++r)
                    least = std::min(least, at_vertex(rows, fixed, planes[p], planes[q], planes[r]));
        return least;
    }

    static Long determinant(const std::array<Long, 3>& x, const std::array<Long, 3>& y, const std::array<Long, 3>& z) {
        return x[0] * (y[1] * z[2] - y[2] * z[1]) - x[1] * (y[0] * z[2] - y[2] * z[0]) + x[2] * (y[0] * z[1] - y[1] * z[0]);
    }

    double at_vertex(std::uint32_t rows, const std::array<int, 3>& fixed, const Plane& p, const Plane& q, const Plane& r) const {
        Long below = determinant(p.a, q.a, r.a);
        if (below == 0) return kInfinity;
        std::array<Long, 3> above;
        for (int j = 0; j < 3; ++j) {
            auto x = p.a, y = q.a, z = r.a;
            x[j] = p.b;
            y[j] = q.b;
            z[j] = r.b;
            above[j] = determinant(x, y, z);
        }
        if (below < 0) {
            below = -below;
            for (Long& x : above) x = -x;
        }
        double distance = 0.0;
        for (int j = 0; j < 3; ++j) {
            if (j >= problem.n) {
                if (above[j] != 0) return kInfinity;
                continue;
            }
            if (above[j] < problem.lower[j] * below || above[j] > problem.upper[j] * below) return kInfinity;
            if (problem.whole[j] && above[j] != fixed[j] * below) return kInfinity;
            if (j < problem.outputs)
                distance += double(problem.weight[j] * std::abs(above[j] - problem.yhat[j] * below)) / double(below);
        }
        for (std::size_t i = 0; i < problem.lines.size(); ++i) {
            if (!(rows >> i & 1)) continue;
            const Line& line = problem.lines[i];
            Long over = -line.b * below;
            for (int j = 0; j < problem.n; ++j) over += line.a[j] * above[j];
            if (over > 0 || (line.equality && over != 0)) return kInfinity;
        }
        return distance;
    }
};

// ---- the search -------------------------------------------------------------------------------------------------

Component component_of(const Problem& problem) {
    Component made;
    Rows& rows = made.rows;
    rows.outputs = problem.outputs;
    bool tied = false;
    for (const Boolean& boolean : problem.booleans) tied |= boolean.tied;
    rows.plain = problem.outputs == problem.n && !tied;
    for (int j = 0; j < problem.n; ++j) {
        rows.lower.push_back(problem.lower[j]);
        rows.upper.push_back(problem.upper[j]);
        rows.integer.push_back(problem.whole[j]);
    }
    rows.start = {0};
    for (std::size_t i = 0; i < problem.lines.size(); ++i) {
        const Line& line = problem.lines[i];
        int largest = 0;
        for (int j = 0; j < problem.n; ++j) largest = std::max(largest, std::abs(line.a[j]));
        const double scale = largest > 0 ? std::ldexp(1.0, -std::ilogb(double(largest))) : 1.0;
        for (int j = 0; j < problem.n; ++j) {
            if (line.a[j] == 0 && !line.varying) continue;
            rows.column.push_back(j);
            rows.coefficient.push_back(line.varying ? 0.0 : line.a[j] * scale);
        }
        rows.start.push_back(Index(rows.column.size()));
        rows.largest.push_back(largest);
        rows.scale.push_back(scale);
        rows.equality.push_back(line.equality);
        rows.place.push_back(line.varying ? Index(rows.varying.size()) : -1);
        if (line.varying) rows.varying.push_back(Index(i));
    }
    rows.global_rows.assign(problem.global_rows.begin(), problem.global_rows.end());
    Logic& logic = made.logic;
    logic.clause_start = logic.true_start = logic.false_start = logic.guarded_start = {0};
    for (const Clause& clause : problem.clauses) {
        logic.clause_literal.insert(logic.clause_literal.end(), clause.literals.begin(), clause.literals.end());
        logic.clause_start.push_back(Index(logic.clause_literal.size()));
        logic.clause_guard.push_back(clause.guard);
    }
    for (std::size_t k = 0; k < problem.booleans.size(); ++k) {
        const Boolean& boolean = problem.booleans[k];
        logic.true_row.insert(logic.true_row.end(), boolean.when_true.begin(), boolean.when_true.end());
        logic.true_start.push_back(Index(logic.true_row.size()));
        logic.false_row.insert(logic.false_row.end(), boolean.when_false.begin(), boolean.when_false.end());
        logic.false_start.push_back(Index(logic.false_row.size()));
        for (std::size_t c = 0; c < problem.clauses.size(); ++c)
            if (problem.clauses[c].guard == int(k)) logic.guarded_clause.push_back(Index(c));
        logic.guarded_start.push_back(Index(logic.guarded_clause.size()));
        logic.tied.push_back(boolean.tied);
    }
    return made;
}

struct Found {
    Status status;
    double distance, bound;
    std::vector<double> z;
    std::vector<Truth> assignment;
};

Found project(const Problem& problem) {
    Search search(component_of(problem));
    const Rows& rows = search.component().rows;
    const Index n = problem.n, m = rows.count(), clauses = Index(problem.clauses.size());
    const auto active = std::make_unique<bool[]>(std::size_t(clauses));
    for (Index c = 0; c < clauses; ++c) active[std::size_t(c)] = problem.clauses[std::size_t(c)].active;
    Table<double> varying(Index(rows.varying.size()), n), right(1, m), yhat(1, problem.outputs);
    std::vector<double> weights;
    for (Index v = 0; v < varying.lines; ++v)
        for (Index j = 0; j < n; ++j) varying(v, j) = problem.lines[std::size_t(rows.varying[std::size_t(v)])].a[std::size_t(j)];
    for (Index i = 0; i < m; ++i) right(0, i) = problem.lines[std::size_t(i)].b;
    for (int j = 0; j < problem.outputs; ++j) {
        yhat(0, j) = problem.yhat[j];
        weights.push_back(problem.weight[j]);
    }
    Found found{Status::numerical, 0.0, 0.0, std::vector<double>(std::size_t(n)), std::vector<Truth>(problem.booleans.size())};
    std::int8_t status = 0;
    Index nodes = 0;
    Table<std::int8_t> column_state(1, n);
    Table<Index> column_source(1, n), tight_rows(1, n);
    Table<double> multipliers(1, n), reduced_costs(1, n);
    const Dictionaries dictionaries{column_state, column_source, tight_rows, multipliers, reduced_costs};
    const Batch batch{{active.get(), 1, clauses},
                      {varying.values.data(), 1, varying.lines, n},
                      Matrix<double>(right),
                      Matrix<double>(yhat),
                      weights};
    const Answers answers{{found.z.data(), 1, n}, {&found.distance, 1}, {&found.bound, 1}, {&status, 1},
                          {found.assignment.data(), 1, Index(found.assignment.size())}, {&nodes, 1}};
    Call call;
    search.project(batch, {100000, 1e-9, 0.0}, answers, &dictionaries, {1, true}, call);
    found.status = Status(status);
    return found;
}

// ---- the comparison ---------------------------------------------------------------------------------------------

void demand(bool held, const char* what, const Found& found, double best) {
    if (held) return;
    std::printf("%s: status %d, distance %.17g, enumeration %.17g\n", what, int(found.status), found.distance, best);
    std::fflush(stdout);
    std::abort();
}

bool point_is_good(const Problem& problem, const Found& found) {
    const auto holds = [&](int i) {
        const Line& line = problem.lines[std::size_t(i)];
        double over = -line.b;
        for (int j = 0; j < problem.n; ++j) over += line.a[j] * found.z[std::size_t(j)];
        return over <= kSame && (!line.equality || over >= -kSame);
    };
    for (int j = 0; j < problem.n; ++j) {
        const double z = found.z[std::size_t(j)];
        if (z < problem.lower[j] - kSame || z > problem.upper[j] + kSame) return false;
        if (problem.whole[j] && std::abs(z - std::nearbyint(z)) > kSame) return false;
    }
    for (int i : problem.global_rows)
        if (!holds(i)) return false;
    for (std::size_t k = 0; k < problem.booleans.size(); ++k) {
        const Truth value = found.assignment[k];
        const auto& asked = value > 0 ? problem.booleans[k].when_true : problem.booleans[k].when_false;
        if (value == 0 || (value < 0 && !problem.booleans[k].tied)) continue;
        for (int i : asked)
            if (!holds(i)) return false;
    }
    const Enumeration clauses{problem, {}};
    return clauses.clauses_hold({found.assignment.begin(), found.assignment.end()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    const Problem problem = read(bytes);
    const Found found = project(problem);
    const double best = Enumeration{problem, {}}.best();
    demand(found.status != Status::limited, "a node limit", found, best);
    demand(found.status != Status::numerical, "given up", found, best);
    demand((found.status == Status::no_solution) == (best == kInfinity), "whether there is a solution", found, best);
    if (best == kInfinity) return 0;
    demand(std::abs(found.distance - best) <= kSame * (1.0 + best), "the distance", found, best);
    demand(found.bound <= best + kSame * (1.0 + best), "the proved bound", found, best);
    demand(point_is_good(problem, found), "the point", found, best);
    return 0;
}
