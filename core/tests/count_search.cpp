// Projects the samples of a file, so that instructions can be counted: benchmarks/instructions.py writes the file and
// runs this under valgrind, which collects within `counted` and `counted_l2` only.
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include "gdpnet/euclidean_search.hpp"
#include "gdpnet/exact.hpp"

using namespace gdpnet;

namespace {

// Arrays in the order they are asked for. A line has a name, a count, and as many numbers.
class Arrays {
public:
    explicit Arrays(const char* path) : file_(path) {}

    template <class T>
    std::vector<T> take(const std::string& name) {
        std::string found, word;
        std::size_t count = 0;
        if (!(file_ >> found >> count) || found != name) throw std::runtime_error("expected " + name + ", found " + found);
        std::vector<T> values(count);
        for (T& value : values) {
            file_ >> word;
            value = T(std::stod(word));  // hexadecimal too, which loses nothing
        }
        return values;
    }
    Index number(const std::string& name) { return take<Index>(name).at(0); }

private:
    std::ifstream file_;
};

Component component_of(Arrays& arrays) {
    Component made;
    Rows& rows = made.rows;
    rows.outputs = arrays.number("outputs");
    rows.lower = arrays.take<double>("lower");
    rows.upper = arrays.take<double>("upper");
    rows.integer = arrays.take<std::uint8_t>("integer");
    rows.start = arrays.take<Index>("start");
    rows.column = arrays.take<Index>("column");
    rows.coefficient = arrays.take<double>("coefficient");
    rows.largest = arrays.take<double>("largest");
    rows.scale = arrays.take<double>("scale");
    rows.equality = arrays.take<std::uint8_t>("equality");
    rows.varying = arrays.take<Index>("varying");
    rows.global_rows = arrays.take<Index>("global_rows");
    rows.plain = arrays.number("plain") != 0;
    rows.place.assign(rows.equality.size(), -1);
    for (std::size_t v = 0; v < rows.varying.size(); ++v) rows.place[std::size_t(rows.varying[v])] = Index(v);
    Logic& logic = made.logic;
    logic.clause_start = arrays.take<Index>("clause_start");
    logic.clause_literal = arrays.take<Index>("clause_literal");
    logic.clause_guard = arrays.take<Index>("clause_guard");
    logic.true_start = arrays.take<Index>("true_start");
    logic.true_row = arrays.take<Index>("true_row");
    logic.false_start = arrays.take<Index>("false_start");
    logic.false_row = arrays.take<Index>("false_row");
    logic.guarded_start = arrays.take<Index>("guarded_start");
    logic.guarded_clause = arrays.take<Index>("guarded_clause");
    logic.tied = arrays.take<std::uint8_t>("tied");
    logic.priced = arrays.take<Index>("priced");
    logic.priced_entry = arrays.take<Index>("priced_entry");
    return made;
}

// A batch and room for its answers.
struct Samples {
    std::vector<std::uint8_t> active;
    std::vector<double> varying, bound, price, yhat, weights;
    std::unique_ptr<bool[]> flags;
    Limits limits;
    Batch batch;
    Table<double> z;
    std::vector<double> distance, least;
    std::vector<std::int8_t> status;
    Table<Truth> assignment;
    std::vector<Index> nodes;

    Samples(Arrays& arrays, const Component& component) {
        const Rows& rows = component.rows;
        const Index size = arrays.number("size"), clauses = component.logic.clauses(), n = rows.columns();
        active = arrays.take<std::uint8_t>("active");
        varying = arrays.take<double>("coefficients");
        bound = arrays.take<double>("bound");
        price = arrays.take<double>("price");
        yhat = arrays.take<double>("yhat");
        weights = arrays.take<double>("weights");
        limits.nodes = arrays.number("node_limit");
        limits.tolerance = arrays.take<double>("tolerance").at(0);
        limits.lost = arrays.take<double>("lost").at(0);
        flags = std::make_unique<bool[]>(active.size());
        std::copy(active.begin(), active.end(), flags.get());
        batch = {{flags.get(), size, clauses},
                 {varying.data(), size, Index(rows.varying.size()), n},
                 {bound.data(), size, rows.count()},
                 {yhat.data(), size, rows.outputs},
                 weights,
                 {price.data(), size, Index(component.logic.priced.size())}};
        z = {size, n};
        distance.resize(std::size_t(size));
        least.resize(std::size_t(size));
        status.resize(std::size_t(size));
        assignment = {size, component.logic.booleans()};
        nodes.resize(std::size_t(size));
    }

    Answers answers() { return {z, distance, least, status, assignment, nodes}; }
};

void project(Search& search, Samples& samples) {
    Call call;
    search.project(samples.batch, samples.limits, samples.answers(), nullptr, {1, true}, call);
}

void project(EuclideanSearch& search, Samples& samples) {
    Call call;
    search.project(samples.batch, samples.limits, samples.answers(), {1, true}, call);
}

template <class AnySearch>
struct Problem {
    AnySearch search;
    Samples samples;

    explicit Problem(Arrays& arrays) : search(component_of(arrays)), samples(arrays, search.component()) {}
    void run() { project(search, samples); }
};

}  // namespace

extern "C" {
__attribute__((noinline)) void counted(Problem<Search>& problem) { problem.run(); }
__attribute__((noinline)) void counted_l2(Problem<EuclideanSearch>& problem) { problem.run(); }
}

namespace {

template <class AnySearch>
int measure(const char* path, void (*count)(Problem<AnySearch>&)) {
    Arrays arrays(path);
    Index nodes = 0;
    double distance = 0.0;
    for (Index left = arrays.number("components"); left > 0; --left) {
        Problem<AnySearch> problem(arrays);
        problem.run();  // what is made once is there
        count(problem);
        for (Index x : problem.samples.nodes) nodes += x;
        for (double x : problem.samples.distance) distance += x;
    }
    std::printf("{\"nodes\": %lld, \"distance\": %.17g, \"compiler\": \"%s\"}\n", static_cast<long long>(nodes), distance,
                __VERSION__);
    return 0;
}

}  // namespace

// The second argument is the norm.
int main(int argc, char** argv) {
    if (argc != 3) return 2;
    return std::string(argv[2]) == "l2" ? measure(argv[1], counted_l2) : measure(argv[1], counted);
}
