"""Breakages of src/spill: what is read and loaded ahead of use."""

PREFETCH = "src/spill/ahead/prefetch.cc"
LOOKS = "src/spill/ahead/prefetch_looks.cc"
PREFETCHER = "src/spill/ahead/prefetcher.h"
THREAD = "src/spill/thread.cc"


def mutation(name, program, gtest_filter, *patches):
    return {"name": name, "test": (program, gtest_filter), "patches": list(patches)}


def product(name, pattern, *patches):
    return {"name": name, "test": ("ctest", pattern), "patches": list(patches)}


MUTATIONS = [
    # Ahead of use
    product("plain memory is read behind its end ahead of use", "^e2e_prefetch$",
            (LOOKS, "return may_load ? address : 0;", "return address;")),
    product("look ahead lets go of compiled code's slots", "^e2e_prefetch$",
            (PREFETCH, "  *pause = kMaxPause;\n  Thread* const", "  *pause = kMaxPause;\n  for (unsigned i = 0; i < 32; ++i) __spillway_slots[i].store(0);\n  Thread* const")),
    product("pins of the program are lost over fork", "^e2e_prefetch$",
            ("src/spill/pins.cc", "  pin_standing_again();\n", "")),
    product("handlers wait for all of a long range", "^e2e_mmap_advice$",
            (PREFETCH, "constexpr uint64_t kPieceBytes = uint64_t{256} << 20;", "constexpr uint64_t kPieceBytes = uint64_t{1} << 50;")),
    product("loads ahead of use cut the program's system calls short", "^e2e_prefetch_undisturbed$",
            (PREFETCH, "open_loads(/*undisturbed=*/true)", "open_loads(/*undisturbed=*/false)")),
    product("each of many threads has a queue of prefetches", "^e2e_waiting_threads$",
            (PREFETCH, "constexpr uint32_t kMaxThreads = 32;", "constexpr uint32_t kMaxThreads = 1000;"),
            (PREFETCH, "open_loads(/*undisturbed=*/true)", "open_loads(/*undisturbed=*/false)")),
    product("a look touches nothing", "^e2e_prefetch_looks$",
            (LOOKS, "  else if (entry < 0)  // counts as a touch: the page should not leave before it is used\n    use(address);\n", "")),
    product("misses in steps are followed beside a walk", "^e2e_prefetch_looks$",
            (PREFETCH, "window.stride != 1 && walking_ != nullptr &&", "false &&")),
    product("threads that have ended keep others from loading ahead", "^e2e_prefetch_after_threads$",
            ("src/spill/runtime.cc", "      reap_finished_threads();\n", "")),
    product("loops look ahead where there is nothing to wait for", "^e2e_prefetch_no_wait$",
            (PREFETCH, "&& runtime.options.prefetch != 0 && is_worth_while_anywhere();", "&& runtime.options.prefetch != 0;")),
    product("misses in steps are loaded ahead of where there is nothing to wait for", "^e2e_prefetch_no_wait$",
            (PREFETCH, "  if (!is_worth_while(address)) return;\n", "")),
    product("a look goes on in a child without a queue", "^e2e_prefetch_handler$",
            (LOOKS, "  if (queue_ == nullptr || is_stopped_ || has_enough()) return end();\n", "  if (is_stopped_ || has_enough()) return end();\n"),
            (PREFETCHER, "    page_count_ = 0;\n  }\n\n private:", "  }\n\n private:"),
            (PREFETCH, "queue_ != nullptr ? queue_->under_way_count() : most;", "queue_->under_way_count();"),
            (LOOKS, "  if (queue_ == nullptr || address >> kAddressBits != 0) return 0;\n", "  if (address >> kAddressBits != 0) return 0;\n"),
            (LOOKS, "  if (queue_ == nullptr || address >> kAddressBits != 0 || !in_range(address)) return;\n", "  if (address >> kAddressBits != 0 || !in_range(address)) return;\n")),
    product("child has its parent's queue of prefetches", "^e2e_prefetch$",
            (THREAD, "    forget_prefetcher(*thread);\n", "")),
    mutation("two misses side by side are a sequence", "sequences_test", "Sequences.*",
             ("src/spill/ahead/sequences.h", "kMinMisses = 3;", "kMinMisses = 2;")),
    mutation("sequences share no room", "sequences_test", "Sequences.*",
             ("src/spill/ahead/sequences.h", "std::clamp(room / others, 1u, most)", "most")),
    mutation("what was not begun is not expected", "sequences_test", "Sequences.WhatWasNotBegun*",
             ("src/spill/ahead/sequences.h", "if (count < 2) return;", "if (count < 2) count = 8;")),
    mutation("a loop that asks where it was due has jumped", "runs_test", "Runs.*", ("src/spill/ahead/runs.h", "if (position != due_) {", "{")),
    mutation("runs in order, some of them left out, have jumped", "runs_test", "Runs.RowsThatAreLeftOut*", ("src/spill/ahead/runs.h", "to_due >= -kMaxGap", "to_due >= 0")),
    mutation("a run that begins before the last one goes on", "runs_test", "Runs.RowsThatBeginAnywhere*", ("src/spill/ahead/runs.h", "from_last >= 0 && ", "")),
    mutation("jumps are not forgotten", "runs_test", "Runs.AFewJumps*", ("src/spill/ahead/runs.h", "jumps_ - std::min(jumps_, 1u)", "jumps_")),
    mutation("a row of two pages is a walk", "walk_test", "Walk.ShortRows*", ("src/spill/ahead/walk.h", "kMinSteps = 2;", "kMinSteps = 1;")),
    mutation("what is ahead of a walk is as much as there are frames", "walk_test", "Walk.WhatIsAhead*",
             ("src/spill/ahead/walk.h", "return std::min(wanted, most / kWindowGrowth); }", "return most < kWindowGrowth ? 0 : wanted; }")),
    mutation("a walk ends where others walk", "walk_test", "Walk.ItGoesOn*", ("src/spill/ahead/walk.h", " || page < next_)", ")")),
    mutation("what there was no room for is not asked for again", "walk_test", "Walk.WhatThereWasNoRoom*", ("src/spill/ahead/walk.h", "    next_ += count;\n", "    next_ += count > 0 ? count : 8;\n")),
    mutation("every page is near a walk", "walk_test", "Walk.NearIs*", ("src/spill/ahead/walk.h", "page <= next_ + window_", "true")),
    mutation("windows of a walk end anywhere", "walk_test", "Walk.WindowsEnd*", ("src/spill/ahead/walk.h", "(page_ + window_ + kGroupPages) / kGroupPages * kGroupPages", "page_ + window_ + 1")),
    mutation("stream ends at a page that is in memory", "streams_test", "Streams.PagesThatAreThere*",
             ("src/spill/ahead/streams.cc", "to_next / stream.stride >= -static_cast<int64_t>(stream.window);", "to_next / stream.stride >= 0;")),
    mutation("a stream that misses nothing is forgotten", "streams_test", "Streams.OneThatMissesNothing*",
             ("src/spill/ahead/streams.cc", "    stream.used = now_;\n    stream.mark = {};\n", "    stream.mark = {};\n")),
    mutation("only the first page of a window opens the next", "streams_test", "Streams.AnyPage*",
             ("src/spill/ahead/streams.h", "return page - first < count; }", "return page == first && count != 0; }")),
    mutation("one window of many pages is ahead of another", "streams_test", "Streams.NoMoreThan*",
             ("src/spill/ahead/streams.cc", "std::min(2 * stream.window, most)} - ahead(stream, page)", "4 * stream.window}")),
    mutation("a wait for a page that comes is a miss in no order", "streams_test", "Streams.AMissInAWindow*",
             ("src/spill/ahead/streams.cc", "return {.first = stream.next, .stride = stream.stride};", "return {};")),
    mutation("a stream goes on where the program goes at random", "streams_test", "Streams.AdviceIsHeeded",
             ("src/spill/ahead/streams.cc", "    if (pattern == Pattern::kRandom) return {};\n", "")),
    product("looks load windows where the program goes at random", "^e2e_prefetch_advice$",
            (LOOKS, "advice == Pattern::kRandom ? advice", "advice == Pattern::kSequential ? Pattern::kNormal")),
    mutation("an access across an edge hides the first use of a marked page", "cross_quick_test", "CrossQuickTest.LeavesTheFirstUse*",
             ("src/spill/cross_quick.c", "spillway_is_marked(address) ? 0 : ", "")),
    mutation("marks are looked at by their first pages", "translate_quick_test", "TranslateQuickTest.TheFirstUse*",
             ("src/spill/translate_quick.c", "< spillway_marks[i].count;", "== 0 && spillway_marks[i].count != 0;")),
    mutation("the youngest stream goes once misses are counted anew", "streams_test", "Streams.SeveralGoOnAtATimeWhen*",
             ("src/spill/ahead/streams.cc", "now_ - x.used < now_ - y.used", "now_ * 0 + x.used > y.used")),
]
