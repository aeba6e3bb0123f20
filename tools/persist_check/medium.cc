#include "medium.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/checksum.h"
#include "base/mix.h"

namespace persist_check {
namespace {

void apply(Units& content, const Piece& piece, uint8_t units) {
  for (size_t i = 0; i < kUnitsOfLine; ++i)
    if ((units >> i & 1) != 0) content[i] = piece.content[i];
}

// Which units of a store may be there without the others: all choices if they are few; otherwise each alone, all but each, and halves.
std::vector<uint8_t> torn_units(uint8_t changed) {
  constexpr int kMaxAll = 4;
  std::vector<uint8_t> choices;
  if (std::popcount(changed) <= kMaxAll) {
    for (unsigned units = (changed - 1u) & changed; units != 0; units = (units - 1) & changed)
      choices.push_back(static_cast<uint8_t>(units));
    return choices;
  }
  for (unsigned left = changed; left != 0; left &= left - 1) {
    const unsigned unit = left & -left;
    choices.push_back(static_cast<uint8_t>(unit));
    choices.push_back(static_cast<uint8_t>(changed & ~unit));
    if (const unsigned before = changed & (unit - 1); std::popcount(before) > 1 && std::popcount(left) > 2)
      for (const unsigned half : {before, changed & ~before}) choices.push_back(static_cast<uint8_t>(half));
  }
  return choices;
}

}  // namespace

uint64_t hash_of(LineId id, const Units& content) {
  return base::mix(base::checksum(content.data(), sizeof content) ^ base::mix(base::index(id)));
}

Medium::Medium(const History& history) : history_(history) {
  for (const File& file : history.files) sure_.push_back(file.initial);
}

void Medium::make_sure(LineId id, uint64_t end) {
  Line& line = lines_.at(id);
  if (end <= line.sure) return;
  const size_t count = std::min<size_t>(end - line.sure, line.pending.size());
  Units& content = sure_[file_of(id)][line_of(id)];
  sure_hash_ ^= hash_of(id, content);
  for (size_t i = 0; i < count; ++i) apply(content, *line.pending[i].piece, line.pending[i].piece->units);
  sure_hash_ ^= hash_of(id, content);
  line.pending.erase(line.pending.begin(), line.pending.begin() + static_cast<ptrdiff_t>(count));
  line.sure += count;
  if (line.pending.empty()) open_.erase(id);
  has_more_sure_ = true;
}

void Medium::flush(LineId id, const Event& event) {
  if (!open_.contains(id)) return;
  Line& line = lines_.at(id);
  line.flushed = line.end();
  line.flush_event = next_;
  if (event.kind == RecordKind::kFlush && (event.flags & persist::kOrdered) != 0)
    make_sure(id, line.end());
  else
    unfenced_[event.thread].push_back({id, line.end(), next_});
}

bool Medium::advance() {
  const Event& event = history_.events[next_];
  has_more_sure_ = false;
  if (event.kind == RecordKind::kStore || event.kind == RecordKind::kMap)
    for (const Piece& piece : history_.pieces_of(event)) {
      if (piece.changed != 0) {
        Line& line = lines_[piece.line];
        line.pending.push_back({next_, &piece});
        open_.insert(piece.line);
        if (piece.is_outside) make_sure(piece.line, line.end());
      }
      // If the line is in a cache, the CPU writes it back: earlier stores to it count as flushed, too.
      if ((event.flags & persist::kPastCaches) != 0) flush(piece.line, event);
    }
  if (event.kind == RecordKind::kFlush)
    for (uint64_t i = 0; i < event.line_count; ++i) flush(line_id(event.file, event.first_line + i), event);
  if (event.kind == RecordKind::kFence) {
    for (const Unfenced& flushed : unfenced_[event.thread]) make_sure(flushed.line, flushed.end);
    unfenced_[event.thread].clear();
  }
  ++next_;
  return has_more_sure_;
}

std::vector<Medium::Unfenced> Medium::unfenced() const {
  std::vector<Unfenced> all;
  for (const auto& [thread, list] : unfenced_)
    for (const Unfenced& flushed : list)
      if (flushed.end > lines_.at(flushed.line).sure) all.push_back(flushed);
  std::ranges::sort(all, {}, &Unfenced::event);
  return all;
}

std::vector<LineState> Medium::states(LineId id, size_t count_max, bool& is_all) const {
  const Line& line = lines_.at(id);
  Units content = sure_[file_of(id)][line_of(id)];
  std::vector<LineState> between;
  std::set<Units> seen;
  const LineState first = {content, 0, 0};
  for (size_t i = 0; i < line.pending.size(); ++i) {
    const Piece& piece = *line.pending[i].piece;
    const bool is_found = (history_.events[line.pending[i].event].flags & persist::kFound) != 0;
    if (!is_found && std::popcount(piece.changed) > 1)
      for (const uint8_t units : torn_units(piece.changed)) {
        LineState torn = {content, i, units};
        apply(torn.content, piece, units);
        if (seen.insert(torn.content).second) between.push_back(torn);
      }
    if (!is_found && std::popcount(piece.changed) > 4) is_all = false;
    apply(content, piece, piece.units);
    if (i + 1 < line.pending.size() && seen.insert(content).second) between.push_back({content, i + 1, 0});
  }
  const LineState last = {content, line.pending.size(), 0};
  std::erase_if(between, [&](const LineState& state) {
    return state.content == first.content || state.content == last.content;
  });
  std::vector<LineState> states = {first};
  if (between.size() + 2 > count_max) is_all = false;
  const size_t kept = std::min(between.size(), count_max - 2);
  for (size_t i = 0; i < kept; ++i) states.push_back(between[i * between.size() / kept]);
  states.push_back(last);
  return states;
}

}  // namespace persist_check
