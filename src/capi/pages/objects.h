// What the objects behind the page cache's C API are made of, and how its calls answer. (include/spillway/pagecache.h is the contract)
//
// Invariants
//  1 no C++ type, exception or symbol but spillway_pagecache_* leaves the library: it is built as the runtime is
//  2 every call checks what it is given: a mistake of the caller is SPILLWAY_PAGECACHE_INVALID, and never reaches a CHECK of the layers
//    below. The exceptions are handles that are gone, and calls of other threads for what is being closed or removed
//  3 a cache is closed when it has no sessions and queues; a file is removed when nothing is under way for it, and nobody has views of it
//  4 a session writes pages of any file back when it needs their frames, and has a way to that file from then on. Removing the file takes
//    that from all sessions, and shuts the gate of each one meanwhile; calls use a session only inside its gate
#pragma once
#include <vector>

#include "capi/common.h"
#include "pagecache/request_queue.h"
#include "spillway/pagecache.h"
#include "sys/gate.h"

namespace capi::pages {

// Some of a cache's objects, under its lock.
template <class T>
class Members {
 public:
  T* first() const { return first_; }
  uint32_t count() const { return count_; }
  void add(T& member) {
    member.before = nullptr;
    member.next = first_;
    if (first_ != nullptr) first_->before = &member;
    first_ = &member;
    ++count_;
  }
  void remove(T& member) {
    (member.before != nullptr ? member.before->next : first_) = member.next;
    if (member.next != nullptr) member.next->before = member.before;
    --count_;
  }

 private:
  T* first_ = nullptr;
  uint32_t count_ = 0;
};

// The base of each kind of object that is in Members.
template <class T>
struct Member {
  T* before = nullptr;
  T* next = nullptr;
};

// Holds a view.
struct Holder {
  spillway_pagecache_session* session = nullptr;
  size_t file_index = 0;
  pagecache::View view;
  Holder* next = nullptr;  // of the session's free ones
};

// A request of a queue: FREE ──submit──► UNDER WAY ──poll──► FREE, and the callback runs
struct Slot : pagecache::Request {
  spillway_pagecache_queue* of = nullptr;
  // Null: FREE. Changed by the queue's thread; read when a file is removed, for which nobody submits or polls any more.
  std::atomic<spillway_pagecache_file*> used_file{nullptr};
  spillway_pagecache_done callback = nullptr;
  void* context = nullptr;
};

int status_of(const base::Error& error);
// Keeps the error's line, for the session or, null, for the calling thread, and returns its status.
int refuse(spillway_pagecache_session* session, const base::Error& error);
// The same for a mistake of the caller.
template <class... Parts>
int refuse_invalid(spillway_pagecache_session* session, const Parts&... parts) {
  return refuse(session, base::Error::of(EINVAL, parts...));
}
// The same for something that is in the way.
template <class... Parts>
int refuse_in_use(spillway_pagecache_session* session, const Parts&... parts) {
  return refuse(session, base::Error::of(EBUSY, parts...));
}

}  // namespace capi::pages

struct spillway_pagecache {
  pagecache::PageCache* cache = nullptr;
  pagecache::Servers* servers = nullptr;  // null: it has no threads
  bool has_barrier = false;               // of sessions' gates
  sys::Mutex lock;                        // guards what follows; taken before any gate is shut or entered
  capi::pages::Members<spillway_pagecache_file> files;
  capi::pages::Members<spillway_pagecache_session> sessions;
  capi::pages::Members<spillway_pagecache_queue> queues;
  pagecache::SessionCounts closed_counts;  // of sessions and queues that are gone
};

struct spillway_pagecache_file : capi::pages::Member<spillway_pagecache_file> {
  spillway_pagecache* cache = nullptr;
  storage::Device* device = nullptr;
  pagecache::File* file = nullptr;
  bool is_read_only = false;
};

struct spillway_pagecache_session : capi::pages::Member<spillway_pagecache_session> {
  explicit spillway_pagecache_session(spillway_pagecache& of) : cache(&of), gate(of.has_barrier) {}

  spillway_pagecache* const cache;
  sys::Gate gate;  // guards what follows, except the line
  pagecache::Session session;
  std::vector<uint32_t> view_counts;  // by the file's number - 1
  size_t view_count = 0;              // of all files
  capi::pages::Holder* free_holders = nullptr;
  char error[sizeof(base::Error::message)] = {};
};

struct spillway_pagecache_queue : capi::pages::Member<spillway_pagecache_queue> {
  spillway_pagecache* cache = nullptr;
  pagecache::RequestQueue queue;
  sys::Event event;  // open from the first spillway_pagecache_event() on
  capi::pages::Slot* slots = nullptr;
  uint32_t slot_count = 0;
  task::WorkList free_slots;
  bool is_polling = false;  // callbacks run
};
