"""Breakages of src/spill/preload: pages of programs that spillcc did not compile."""

PAGER = "src/spill/preload/pager.cc"
EVICT = "src/spill/preload/pager_evict.cc"
STORE = "src/spill/preload/store.cc"
SERVICE = "src/spill/preload/service.cc"
LARGE = "src/spill/preload/large.cc"


def mutation(name, *patches):
    return {"name": name, "test": ("ctest", "^e2e_preload_quick$"), "patches": list(patches)}


def of_whole(name, *patches):
    return {"name": name, "test": ("ctest", "^e2e_preload$"), "patches": list(patches)}


MUTATIONS = [
    of_whole("small blocks are the C library's, whoever's heap the program has",
             ("src/spill/preload/heap.cc", "  if (is_left(bytes)) PASS(malloc, bytes);\n", "  if (is_passive()) PASS(malloc, bytes);\n  if (!spills(bytes)) return sys::c_malloc(bytes);\n")),
    of_whole("what takes a mapping's place may be another thread's",
             ("src/spill/preload/mmap.cc", "  return renew_large(begin, length) ? address", "  for_allocated(begin, begin + length, unmap_large);\n  return map_large_at(begin, length) ? address")),
    of_whole("what takes a mapping's place has its content",
             (LARGE, "  ask_discard(address, bytes);\n  return true;", "  return true;")),
    of_whole("what was a large block is freed, not its own heap's",
             ("src/spill/preload/heap.cc", "    NEXT(free)(block);", "    sys::c_free(block);")),
    of_whole("a program with many names is not understood",
             ("tools/spillway/program.cc", "std::min(kMaxName, names_bytes - begin)", "names_bytes - begin")),
    mutation("changed page dropped",
             (EVICT, "if (now.same_content_as(frame.known)) {", "if (now.same_content_as(frame.known) || i % 8 == 7) {")),
    {"name": "all pages are cooled at a time", "test": ("cooling_test", "*"), "patches": [
             ("src/spill/preload/cooling.h", "std::min(allowed / kCoolingShare, cooling + kMostCooled) + leaving", "std::max(allowed / kCoolingShare, cooling) + leaving")]},
    mutation("second chance lost",
             (PAGER, "  else if (frames_[frame].state == State::kCooling)\n    bring_back(page);\n", "")),
    mutation("discard forgets what lies on storage",
             (PAGER, "    store_.forget(pages_[page].spot);\n    pages_[page].spot = kNoSpot;\n    const FrameNumber frame", "    const FrameNumber frame")),
    mutation("discard leaves pages on their second chance",
             (PAGER, "    if (frame == kNone) continue;\n    if (frames_[frame].state == State::kCooling)", "    if (frame == kNone || frames_[frame].state == State::kCooling) continue;\n    if (false)")),
    mutation("moved memory loses what lies on storage",
             (PAGER, "    pages_[target].spot = spot;", "    pages_[target].spot = kNoSpot;")),
    of_whole("pages beside read-only ones stay in memory",
             (EVICT, "  if (moved <= 0 && count > 1) moved = faults_->move(to, from, kOsPageBytes);\n", "")),
    mutation("moving what was never used takes memory",
             (PAGER, "    if (!is_touched(source)) {", "    if (false) {")),
    mutation("write failure of a page lost",
             (STORE, "    page.saved = batch.io_of(i).whole();", "    page.saved = true;")),
    mutation("read failure lost",
             (STORE, "if (spots[i] == kNoSpot || batch.io_of(i).whole()) continue;", "if (i < spots.size()) continue;")),
    mutation("zeros for what is on storage",
             (PAGER, "spots[i] = pages_[first + i].spot;", "spots[i] = i > 8 ? kNoSpot : pages_[first + i].spot;")),
    mutation("fingerprint known although the page could not be written",
             (EVICT, "      frame.known = base::Fingerprint::unknown();", "      frame.known = now;")),
    mutation("freed memory is not forgotten",
             (LARGE, "  ask_discard(address, bytes);\n  free_addresses", "  free_addresses")),
    mutation("memory that may not be accessed does not move",
             (LARGE, "  set_access(address, old_bytes, PROT_READ | PROT_WRITE);\n", "")),
    mutation("a child's child crashes without a word",
             ("src/spill/preload/start.cc", "      !runtime.is_fork_child.load(std::memory_order_relaxed))\n    return;", "      true)\n    return;")),
    mutation("child of fork sees zeros",
             (SERVICE, "  sys::keep_from_children(reinterpret_cast<void*>(kRangeBegin), kRangeEnd - kRangeBegin);\n", "")),
    mutation("daemon holds the standard error that it began with, preloaded",
             ("src/spill/preload/start.cc", "  sys::leave_error_output();  // it may be a daemon\n", "")),
    of_whole("program whose main thread left never ends",
             ("src/spill/preload/last_thread.cc", " note(kMainLeft);\n", " return;\n")),
    of_whole("the kernel's workers are threads of a program",
             ("src/spill/preload/last_thread.cc", "return (flags & kIoWorker) != 0;", "return false;")),
    mutation("program can close what serves its faults",
             (SERVICE, "  if (sys::failed(sys::syscall(SYS_close_range, ~0u, ~0u, kUnshare))) return;", "  if (kUnshare != 0) return;")),
]
