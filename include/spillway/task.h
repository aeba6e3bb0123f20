// Loops whose iterations run as many tasks on few threads, so that their misses overlap: while one waits for a page from
// storage, its worker runs others. Needs C++14.
//
//   spillway::parallel_for(size_t{0}, keys.size(), [&](size_t i) { found[i] = table.find(keys[i]); });
//
// Returns when body(i) has returned for all i in [begin, end). Bodies run in any order, many at a time, on several threads and
// several on one, so what two of them share needs the same care as between threads.
//
//   What a body may do
//    anything, as on a thread: allocate, lock mutexes, throw and catch, fork, loops of its own (which run one iteration after
//    the other)
//   What it may not
//    wait for another iteration, by a condition, a barrier, a semaphore or otherwise: that may not have begun, or wait for this one's worker
//    leave by an exception (std::terminate), by pthread_exit or by longjmp
//    vfork, and touch spilled memory in the child: a page that this thread has begun to read comes when the thread goes on
//    hold a lock of its own making, as from an atomic flag, while it touches spilled memory; mutexes, reader-writer locks, spin
//    locks of pthread.h, std::call_once and the initialisers of static variables are known, and a task that has one waits with its worker
//    the same for a lock inside a library that spillcc did not compile, while it calls back: dl_iterate_phdr, fopencookie
//   What belongs to the thread
//    thread_local variables, the thread's id, uselocale() are the worker's: other iterations run on it, also between two
//    accesses of this one to spilled memory
//   errno, exceptions under way and the rounding mode are the task's own, which runs some iterations one after the other.
//
// A child that a body forks has this iteration and no other; when the body returns there, the child exits with status 0.
// Cancellation of the thread that called takes effect after the loop.
//
// In a program without the runtime, a loop runs one iteration after the other.
#ifndef SPILLWAY_TASK_H
#define SPILLWAY_TASK_H
#include <stddef.h>
#include <stdint.h>

#include <type_traits>

// The runtime's; null in programs without it. run(context, first, last) runs the iterations from first to *last - 1,
// and looks at *last before each.
extern "C" void __spillway_run_loop(void (*run)(void* context, uint64_t first, const volatile uint64_t* last),
                                    void* context, uint64_t count, uint64_t grain, uint32_t tasks,
                                    uint32_t workers, uint64_t stack_bytes) __attribute__((weak));

namespace spillway {

// 0: the runtime chooses.
struct LoopOptions {
  uint32_t tasks = 0;        // at a time on all workers: 32 for each
  uint32_t workers = 0;      // threads: as many as there are CPUs
  uint64_t grain = 0;        // iterations that a task takes at a time: an eighth of its share
  uint64_t stack_bytes = 0;  // of each task: 64 KiB
};

template <class Begin, class End, class Body>
void parallel_for(Begin begin, End end, const LoopOptions& options, const Body& body) {
  using Index = typename std::common_type<Begin, End>::type;
  struct Context {
    const Body& body;
    Index begin;
  } context = {body, static_cast<Index>(begin)};
  if (!(static_cast<Index>(begin) < static_cast<Index>(end))) return;
  struct Run {
    static void run(void* memory, uint64_t first, const volatile uint64_t* last) noexcept {
      const Context& own = *static_cast<const Context*>(memory);
      for (; first < *last; ++first) own.body(static_cast<Index>(static_cast<uint64_t>(own.begin) + first));
    }
  };
  const uint64_t count =
      static_cast<uint64_t>(static_cast<Index>(end)) - static_cast<uint64_t>(context.begin);
  if (__spillway_run_loop)
    __spillway_run_loop(Run::run, &context, count, options.grain, options.tasks, options.workers,
                        options.stack_bytes);
  else
    Run::run(&context, 0, &count);
}

template <class Begin, class End, class Body>
void parallel_for(Begin begin, End end, const Body& body) {
  parallel_for(begin, end, LoopOptions(), body);
}

}  // namespace spillway

#endif
