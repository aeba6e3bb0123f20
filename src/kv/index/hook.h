// Hook: something that the index does for its caller while a region is locked, so that others see both as one step. It refers to a function object, which
// must outlive the call that the hook is passed to.
//
// The function must do no I/O, take only locks that are held just as briefly, and not use the index.
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
