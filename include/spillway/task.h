// Loops whose iterations run as many tasks on few threads, so that their misses overlap: while one iteration waits for a page from storage,
// its worker (the thread it runs on) runs others. Needs C++14. (After TRT, the task runtime of uDepot, FAST 2019, section 3; docs/tasks.md)
//
//   spillway::parallel_for(size_t{0}, keys.size(), [&](size_t i) { found[i] = table.find(keys[i]); });
//
// Returns when body(i) has returned for all i in [begin, end). Bodies run in any order, many at a time, on several threads and several on
// one thread, so whatever two of them share needs the same care as between threads.
//
//   A body may
//    do anything that it may do on a thread: allocate, lock mutexes, throw and catch, fork, run loops of its own (whose iterations run one
//    after the other)
//   A body must not
//    - wait for another iteration, by a condition, a barrier, a semaphore or otherwise: the other one may not have begun, or may wait for
//      this one's worker
//    - be left by an exception (std::terminate), by pthread_exit or by longjmp
//    - touch spilled memory in a child that it makes by vfork: a page that this thread has begun to read arrives only when the thread goes on
//    - touch spilled memory while it holds a lock that the runtime does not know: one that it makes itself, such as an atomic flag, or one
//      inside a library that spillcc did not compile and that calls back (dl_iterate_phdr, fopencookie). Mutexes, reader-writer locks, the
//      spin locks of pthread.h, std::call_once and the initialisers of static variables are known: a task that holds one of these keeps its
//      worker while it waits
//   A body shares with other iterations
//    thread_local variables, the thread's id and uselocale(), which belong to the worker: other iterations run there, also between two
//    accesses of this one to spilled memory. errno, exceptions under way and the rounding mode belong to the task, which runs several
//    iterations one after the other
//
// A child that a body forks has this iteration and no others; when the body returns there, the child exits with status 0. Cancellation of
// the calling thread takes effect after the loop. A loop cannot fail: if there is no memory or there are no threads, and in a program
// without the runtime, it runs one iteration after the other. Cost: some system calls, and the threads, which are started for each loop.
#ifndef SPILLWAY_TASK_H
#define SPILLWAY_TASK_H
#include <stddef.h>
#include <stdint.h>

#include <type_traits>

// The runtime's function, which only parallel_for calls; null in programs without the runtime. run(context, first, last) runs the iterations
// from first to *last - 1, and reads *last before each.
extern "C" void __spillway_run_loop(void (*run)(void* context, uint64_t first, const volatile uint64_t* last),
                                    void* context, uint64_t count, uint64_t grain, uint32_t tasks,
                                    uint32_t workers, uint64_t stack_bytes) __attribute__((weak));

namespace spillway {

// If a member is 0, the runtime chooses. If there are few frames of memory, there are fewer tasks.
struct LoopOptions {
  uint32_t tasks = 0;        // how many run at a time, on all workers, 65,536 at most; 0: 32 for each worker
  uint32_t workers = 0;      // threads, of which the caller is one, 256 at most; 0: as many as there are CPUs
  uint64_t grain = 0;        // how many iterations a task takes at a time; 0: an eighth of its share
  uint64_t stack_bytes = 0;  // the size of each task's stack; 0: 64 KiB
};

// Calls body(i) for each i from begin to end - 1, or for none if end is not above begin. Both are integers; i has their common type.
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

// The same with the runtime's choices.
template <class Begin, class End, class Body>
void parallel_for(Begin begin, End end, const Body& body) {
  parallel_for(begin, end, LoopOptions(), body);
}

}  // namespace spillway

#endif
