// Hook: something that the index does for its caller while a region is locked, so that both are one step to others. Refers to a function object, which
// outlives the call that the hook is passed to.
//
// The function does no I/O, takes only locks that are held as briefly, and does not use the index.
#pragma once

namespace kv {

template <class What>
class Hook {
 public:
  Hook() = default;  // does nothing
  template <class Call>
  Hook(const Call& call)
      : context_(&call),
        call_([](const void* context, const What& what) { (*static_cast<const Call*>(context))(what); }) {}

  void operator()(const What& what) const {
    if (call_ != nullptr) call_(context_, what);
  }

 private:
  const void* context_ = nullptr;
  void (*call_)(const void* context, const What& what) = nullptr;
};

}  // namespace kv
