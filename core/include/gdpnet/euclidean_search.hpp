// A batch of predictions projected onto the rules of one component in the weighted Euclidean norm.
#pragma once

#include <optional>

#include "gdpnet/euclidean.hpp"
#include "gdpnet/exact.hpp"

namespace gdpnet {

// Calls may come from several threads at once.
class EuclideanSearch {
public:
    explicit EuclideanSearch(Component component) : component_(std::move(component)) {}

    const Component& component() const { return component_; }

    // Projects all samples. Distances and bounds are squared, so that those of components add up.
    void project(const Batch& batch, const Limits& limits, const Answers& answers, Threads threads, Call& call);

private:
    // A node, and who visits it.
    template <class AnyNode>
    struct Searched {
        Searched(Sample& sample, Assignment& assignment) : node(sample), nearest(node, assignment) {}
        AnyNode node;
        Euclidean<AnyNode> nearest;
    };

    // Memory of one thread.
    struct Workspace {
        explicit Workspace(const Component& component)
            : sample(component.rows), assignment(component), stack(component), columns(sample, assignment) {
            if (GramNode::suits(component.rows)) products.emplace(sample, assignment);
        }
        Sample sample;
        Assignment assignment;
        Stack stack;
        Searched<EuclideanNode> columns;
        std::optional<Searched<GramNode>> products;
    };

    void one(Workspace& work, const Batch& batch, Index s, const Limits& limits, const Answers& answers, Watch& watch) const;

    // False if rounding prevented an answer.
    template <class AnyNode>
    static bool find(Workspace& work, Searched<AnyNode>& searched, const Batch& batch, Index s, const Limits& limits,
                     const Answers& answers, Watch& watch);

    Component component_;
    Pool<Workspace> pool_;
};

}  // namespace gdpnet
