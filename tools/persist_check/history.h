// History: the validated content of a recorded program's log (src/persist/check/log_format.h), in terms of files instead of addresses.
//
// 1 a line of a file has the same LineId wherever it is mapped, and keeps its past when it is mapped again
// 2 a piece is what one store did to one line. If a line has a content in a new mapping that no store explains, that content is a piece, too
// 3 reading ends on any input; the History has everything before the first damage
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "persist/check/log_format.h"

namespace persist_check {

using persist::kUnitBytes;
using persist::RecordKind;

inline constexpr uint64_t kUnitsOfLine = base::kLineBytes / kUnitBytes;
using Units = std::array<uint64_t, kUnitsOfLine>;

enum class LineId : uint64_t {};
constexpr LineId line_id(uint32_t file, uint64_t line) { return LineId{uint64_t{file} << 48 | line}; }
constexpr uint32_t file_of(LineId id) { return static_cast<uint32_t>(base::index(id) >> 48); }
constexpr uint64_t line_of(LineId id) { return base::index(id) & ((uint64_t{1} << 48) - 1); }

struct File {
  std::string path;            // as the program named it; empty: memory without a file
  uint64_t image_bytes = 0;    // how long its image is
  std::vector<Units> initial;  // what was there before the program's first store
};

struct Piece {
  LineId line;
  Units content;            // of the line after the store, in its `units`
  uint8_t units = 0;        // bit i: unit i was stored
  uint8_t changed = 0;      // those of them that held something else before
  bool is_outside = false;  // not a store of the program; it is durable
};

struct Event {
  RecordKind kind;
  uint8_t flags = 0;
  uint32_t thread = 0;
  uint64_t site = 0;
  uint32_t file = 0;        // kMap, kUnmap, kFlush
  uint64_t first_line = 0;  // the same
  uint64_t line_count = 0;
  size_t first_piece = 0;  // kStore, kMap
  size_t piece_count = 0;
  size_t marker = 0;  // kMarker: which of History::markers
};

struct Module {
  uint64_t begin = 0, end = 0;  // addresses
  uint64_t offset = 0;          // of begin in the file
  std::string path;
};

struct History {
  std::vector<File> files;
  std::vector<Event> events;
  std::vector<Piece> pieces;
  std::vector<std::string> markers;
  std::vector<Module> modules;
  uint32_t process = 0;
  bool is_ended = false;  // the program came to its end
  bool is_full = false;   // the log was full before that
  std::string damage;     // where and why reading ended; empty: the log was read to its end

  std::span<const Piece> pieces_of(const Event& event) const {
    return std::span(pieces).subspan(event.first_piece, event.piece_count);
  }
};

// Returns the content that domain `number` had when it was mapped, which must be `bytes` long; nullopt: it cannot be read.
using LoadContent = std::function<std::optional<std::vector<char>>(uint32_t number, uint64_t bytes)>;

// nullopt: this is not a log of this version; `why` says what is wrong.
std::optional<History> read_history(std::span<const char> log, const LoadContent& load, std::string& why);
// The same for a file, with the domains' contents beside it. Throws std::runtime_error with a message of one line.
History read_history(const std::string& path);

}  // namespace persist_check
