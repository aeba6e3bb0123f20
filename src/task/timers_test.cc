#include "task/timers.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace task {
namespace {

TEST(TimersTest, AgreeWithAnOrderedSet) {
  std::mt19937_64 random(1);
  std::vector<Timers::Node> nodes(500);
  std::set<std::pair<uint64_t, Timers::Node*>> model;
  Timers timers;
  for (int step = 0; step < 200000; ++step) {
    Timers::Node& node = nodes[random() % nodes.size()];
    if (node.is_queued) {
      timers.remove(node);
      ASSERT_EQ(model.erase({node.due_ns, &node}), 1u);
    } else if (random() % 3 != 0) {
      node.due_ns = random() % 1000;
      timers.add(node);
      model.insert({node.due_ns, &node});
    }
    ASSERT_EQ(timers.due_ns(), model.empty() ? kNever : model.begin()->first);
    if (random() % 4 == 0 && !model.empty()) {
      Timers::Node* const first = timers.first();
      timers.remove(*first);
      ASSERT_EQ(model.erase({first->due_ns, first}), 1u);
    }
  }
}

}  // namespace
}  // namespace task
