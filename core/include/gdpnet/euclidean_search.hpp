// A batch of predictions projected onto the rules of one component in the weighted Euclidean norm.
#pragma once

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
    // Memory of one thread.
    struct Workspace {
        explicit Workspace(const Component& component)
            : sample(component.rows),
              node(sample),
              assignment(component),
              stack(component),
              nearest(node, assignment) {}
        Sample sample;
        EuclideanNode node;
        Assignment assignment;
        Stack stack;
        Euclidean nearest;
    };

    void one(Workspace& work, const Batch& batch, Index s, const Limits& limits, const Answers& answers, Watch& watch) const;

    Component component_;
    Pool<Workspace> pool_;
};

}  // namespace gdpnet
