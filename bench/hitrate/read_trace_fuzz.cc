// Fuzzes the readers of cache traces: the first byte chooses the format, the rest is a file's content. What is accepted has accesses, to
// pages that are numbered as they appear; what is refused says in one line why.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "hitrate/read_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMaxAccesses = 4'096;
  if (size == 0) return 0;
  const auto format = static_cast<hitrate::Format>(data[0] % hitrate::kFormatCount);
  const std::string_view content(reinterpret_cast<const char*>(data + 1), size - 1);
  hitrate::TraceBuilder builder(kMaxAccesses);
  const auto read = hitrate::read_trace(format, content, "FILE", builder);
  const hitrate::Trace trace = builder.take();
  uint32_t pages = 0;
  for (const uint32_t page : trace.accesses) {
    CHECK_LE(page, pages);
    pages = std::max(pages, page + 1);
  }
  CHECK_EQ(trace.page_count, pages);
  CHECK_LE(trace.accesses.size(), kMaxAccesses);
  if (read) {
    CHECK_GT(trace.accesses.size(), 0u);
  } else {
    CHECK_EQ(read.error().number, EINVAL);
    CHECK_EQ(std::strncmp(read.error().message, "FILE", 4), 0);
  }
  return 0;
}
