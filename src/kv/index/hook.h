// Hook: what a caller of the index has done while a region is locked, so that it is of one time with what the index does there. Refers to
// a function object, which outlives the call it is passed to.
//
// It does no I/O, waits for nobody but those who hold a lock as briefly, and uses nothing of the index.
#pragma once

namespace kv {

template <class What>
class Hook {
 public:
  Hook() = default;  // nothing is done
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
