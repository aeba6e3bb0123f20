#include "server/resp/command.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "server/resp/words.h"

namespace server::resp {
namespace {

// Flags that many have.
constexpr unsigned kControl = kNoScript | kLoading | kStale;
constexpr unsigned kForStrangers = kControl | kNoAuth | kAllowBusy;

constexpr Command kCommands[] = {
#define COMMAND(id, ...) {CommandId::id, __VA_ARGS__},
#include "server/resp/commands.inc"
#undef COMMAND
};
constexpr size_t kCommandCount = std::size(kCommands);

constexpr size_t kMaxNameBytes = 16;

// Names are looked up by hash, in a table with open addressing that is more than half empty.
constexpr size_t kSlotCount = 256;
constexpr uint8_t kEmpty = 0xff;
static_assert(kCommandCount < kSlotCount / 2 && kCommandCount < kEmpty);

constexpr size_t slot_of(std::string_view name) {
  uint32_t hash = 2166136261;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return (hash ^ hash >> 16) % kSlotCount;
}

consteval std::array<uint8_t, kSlotCount> make_slots() {
  std::array<uint8_t, kSlotCount> slots;
  slots.fill(kEmpty);
  for (size_t i = 0; i < kCommandCount; ++i) {
    size_t slot = slot_of(kCommands[i].name);
    while (slots[slot] != kEmpty) slot = (slot + 1) % kSlotCount;
    slots[slot] = static_cast<uint8_t>(i);
  }
  return slots;
}
constexpr std::array<uint8_t, kSlotCount> kSlots = make_slots();

consteval bool names_fit() {
  for (const Command& command : kCommands)
    if (command.name.size() > kMaxNameBytes) return false;
  return true;
}
static_assert(names_fit());

// A name in lower case, in pieces. What is longer than any command is no name.
class Name {
 public:
  bool append(std::string_view text) {
    if (text.size() > bytes_.size() - size_) return false;
    for (const char c : text) bytes_[size_++] = to_lower(c);
    return true;
  }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, kMaxNameBytes> bytes_;
  size_t size_ = 0;
};

const Command* find(const Name& name) {
  for (size_t slot = slot_of(name.view()); kSlots[slot] != kEmpty; slot = (slot + 1) % kSlotCount)
    if (kCommands[kSlots[slot]].name == name.view()) return &kCommands[kSlots[slot]];
  return nullptr;
}

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

const Command& command_of(CommandId id) { return kCommands[std::to_underlying(id)]; }

std::span<const Command> subcommands_of(const Command& command) {
  const size_t begin = std::to_underlying(command.id) + size_t{1};
  size_t end = begin;
  while (end < kCommandCount && kCommands[end].name.starts_with(command.name) &&
         kCommands[end].name[command.name.size()] == '|')
    ++end;
  return all_commands().subspan(begin, end - begin);
}

const Command* find_by_name(std::string_view text) {
  Name name;
  return name.append(text) ? find(name) : nullptr;
}

const Command* find_by_name(std::string_view container, std::string_view subcommand) {
  Name name;
  return name.append(container) && name.append("|") && name.append(subcommand) ? find(name) : nullptr;
}

Accepted<const Command*> find_command(Arguments arguments) {
  CHECK_GE(arguments.size(), 1u);
  const Command* command = find_by_name(arguments[0]);
  if (command == nullptr || command->is_subcommand()) {
    const bool is_http = is_word(arguments[0], "post") || is_word(arguments[0], "host:");
    return refuse(is_http ? Problem::kHttp : Problem::kUnknownCommand);
  }
  if (arguments.size() > 1 && !subcommands_of(*command).empty()) {
    command = find_by_name(arguments[0], arguments[1]);
    if (command == nullptr) return refuse(Problem::kUnknownSubcommand);
  }
  if (!command->takes(arguments.size())) return refuse(Problem::kWrongArity, command->name);
  return command;
}

KeyRange key_range(const Command& command, size_t argument_count) {
  CHECK(command.takes(argument_count));
  if (command.first_key == 0) return {};
  const size_t last = command.last_key >= 0 ? static_cast<size_t>(command.last_key)
                                            : argument_count - static_cast<size_t>(-command.last_key);
  return {.first = static_cast<size_t>(command.first_key),
          .end = last + 1,
          .step = static_cast<size_t>(command.key_step)};
}

bool is_value(const Command& command, size_t i) {
  switch (command.id) {
    case CommandId::kAppend:
    case CommandId::kGetset:
    case CommandId::kSet:
    case CommandId::kSetnx: return i == 2;
    case CommandId::kPsetex:
    case CommandId::kSetex:
    case CommandId::kSetrange: return i == 3;
    case CommandId::kMset:
    case CommandId::kMsetnx: return i > 0 && i % 2 == 0;
    default: return false;
  }
}

}  // namespace server::resp
