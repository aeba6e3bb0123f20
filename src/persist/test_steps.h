// For tests: a signal after each instruction, by the processor's single steps, so that a handler can come anywhere in a piece of code.
#pragma once
#include <signal.h>
#include <ucontext.h>

#include <functional>

namespace persist {

// One at a time in a process.
class Steps {
 public:
  Steps() {
    current_ = this;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &old_);
  }
  ~Steps() { sigaction(SIGTRAP, &old_, nullptr); }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Runs `code`, and `act` in a handler after `number` of its instructions, counted from some place shortly before it. Returns whether there are as many.
  template <class Code>
  bool act_after(uint64_t number, const Code& code, const std::function<void()>& act) {
    act_ = &act;
    left_ = number;
    has_acted_ = false;
    is_over_ = false;
    raise(SIGTRAP);  // which begins it
    code();
    is_over_ = true;
    return has_acted_;
  }

 private:
  static constexpr greg_t kTrapFlag = 0x100;

  static void handle(int, siginfo_t*, void* context) {
    Steps& steps = *current_;
    auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
    flags |= kTrapFlag;
    if (steps.is_over_) {
      flags &= ~kTrapFlag;
    } else if (steps.left_-- == 0) {
      flags &= ~kTrapFlag;
      steps.has_acted_ = true;
      (*steps.act_)();
    }
  }

  static inline Steps* current_ = nullptr;
  struct sigaction old_ = {};
  const std::function<void()>* act_ = nullptr;
  uint64_t left_ = 0;
  volatile bool has_acted_ = false, is_over_ = false;
};

}  // namespace persist
