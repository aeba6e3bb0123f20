// ListPolicy: a policy that keeps the frames that hold pages in lists, each ordered from oldest to newest.
//
//   nodes_   for each frame its neighbours, the list that it is in, and a byte for the class
//
// A pair of a warm and a cool list is a queue whose older half is cool: pages enter the warm list, become cool when that is the larger one
// (cool_half), and are judged at the end of the cool one: touched since they became cool, or not.
#pragma once
#include "base/check.h"
#include "cache/policies/policy.h"

namespace cache {

template <uint8_t Lists>
class ListPolicy : public Policy {
 protected:
  struct Node {
    uint32_t older;
    uint32_t newer;
    uint8_t list;
    uint8_t seen;  // nrlfu: was cooled since it was loaded
    uint16_t unused;
  };
  static_assert(sizeof(Node) == 12);
  ListPolicy() = default;
  ~ListPolicy() = default;

  static constexpr uint32_t kFrameBytes = sizeof(Node);
  static constexpr uint32_t kNone = ~uint32_t{0};

  Node& node(FrameId frame) { return nodes_[index(frame)]; }
  const Node& node(FrameId frame) const { return nodes_[index(frame)]; }
  uint32_t count(uint8_t list) const { return lists_[list].count; }
  FrameId oldest(uint8_t list) const {
    return count(list) == 0 ? base::kNoFrame : FrameId{lists_[list].oldest};
  }

  // As the newest.
  void append(FrameId frame, uint8_t to) {
    List& list = lists_[to];
    node(frame).list = to;
    node(frame).older = list.newest;
    node(frame).newer = kNone;
    (list.count == 0 ? list.oldest : nodes_[list.newest].newer) = index(frame);
    list.newest = index(frame);
    ++list.count;
  }
  void remove(FrameId frame) {
    const Node& removed = node(frame);
    List& list = lists_[removed.list];
    if (cleaned_ == index(frame)) cleaned_ = removed.newer;
    (removed.older == kNone ? list.oldest : nodes_[removed.older].newer) = removed.newer;
    (removed.newer == kNone ? list.newest : nodes_[removed.newer].older) = removed.older;
    --list.count;
  }
  void move(FrameId frame, uint8_t to) {
    remove(frame);
    append(frame, to);
  }
  // All of `from` become the newest of `to`.
  void move_all(uint8_t from, uint8_t to) {
    while (count(from) > 0) move(oldest(from), to);
  }

  // Of a pair: the page that becomes cool now, if one should.
  FrameId cool_half(uint8_t warm, uint8_t cool) {
    if (count(warm) <= count(cool)) return base::kNoFrame;
    const FrameId frame = oldest(warm);
    move(frame, cool);
    return frame;
  }
  // Of a pair: its oldest page, which becomes its newest. REQUIRES: there is one.
  FrameId take_oldest(uint8_t warm, uint8_t cool) {
    const FrameId frame = oldest(count(cool) > 0 ? cool : warm);
    move(frame, warm);
    return frame;
  }

  // For next_to_clean: from the oldest of the list on.
  FrameId clean_along(uint8_t list, uint32_t reach) {
    if (cleaned_count_ == 0) cleaned_ = count(list) > 0 ? lists_[list].oldest : kNone;
    if (cleaned_ == kNone || cleaned_count_ >= reach) {
      cleaned_count_ = 0;
      return base::kNoFrame;
    }
    ++cleaned_count_;
    const FrameId frame{cleaned_};
    cleaned_ = node(frame).newer;
    return frame;
  }

 private:
  struct List {
    uint32_t oldest = kNone;
    uint32_t newest = kNone;
    uint32_t count = 0;
  };

  void take_frame_memory(char* memory) final { nodes_ = reinterpret_cast<Node*>(memory); }

  Node* nodes_ = nullptr;
  List lists_[Lists];
  uint32_t cleaned_ = kNone;    // where clean_along continues
  uint32_t cleaned_count_ = 0;  // how many it has named
};

}  // namespace cache
