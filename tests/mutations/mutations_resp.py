"""Breakages of src/server/resp: a request is the same however it arrives, what is wrong is refused as Redis refuses it."""

ADMINISTRATION = "src/server/resp/administration.cc"
ARGUMENTS = "src/server/resp/arguments.cc"
COMMAND = "src/server/resp/command.cc"
COMMAND_INFO = "src/server/resp/command_info.cc"
GLOB = "src/server/resp/glob.cc"
INLINE = "src/server/resp/inline.cc"
NUMBERS = "src/server/resp/numbers.cc"
REFUSAL = "src/server/resp/refusal.cc"
REPLY = "src/server/resp/reply.cc"
REQUEST = "src/server/resp/request.cc"
REQUEST_QUEUE = "src/server/resp/request_queue"
SHORT_LIST = "src/server/resp/short_list.h"


def mutation(name, gtest_filter, *patches):
    return {"name": name, "test": ("resp_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Requests
    mutation("argument is whole without its line end", "Request.*",
             (REQUEST, "  if (there_bytes < needed_bytes) return", "  if (there_bytes < bulk_bytes_) return")),
    mutation("length of an argument is read again when more comes", "Request.*",
             (REQUEST, "  knows_length_ = true;\n", "")),
    mutation("arguments of the request before stay", "Request.Many*",
             (REQUEST, "  places_.clear();\n", "")),
    mutation("line is read before its last byte has come", "Request.*",
             (REQUEST, "  if (rest.size() < end + kLineEndBytes) return more(1);\n", "")),
    mutation("line without end is waited for", "Request.LinesAreBounded",
             (REQUEST, "    if (rest.size() > most) return fail(is_bounded_by_room ? kTooLarge : too_big);\n", "    (void)too_big;\n")),
    mutation("bound of a line depends on what has arrived", "Request.LinesAreBounded",
             (REQUEST, "rest.substr(0, most + 1).find('\\r')", "rest.find('\\r')")),
    mutation("input of a request is not bounded", "Request.TheInput*",
             (REQUEST, "  if (room < kLineEndBytes || bulk_bytes_ > room - kLineEndBytes) return fail(kTooLarge);\n", "  (void)room;\n")),
    mutation("stranger may send as much as anybody", "Request.WhoHasGiven*",
             (REQUEST, "*length > kMaxStrangersBulkBytes && !limits.is_authenticated", "false")),
    mutation("stranger may send as many arguments as anybody", "Request.WhoHasGiven*",
             (REQUEST, "*count > kMaxStrangersArguments && !limits.is_authenticated", "false")),
    mutation("negative length taken for a large one", "Request.LengthsOf*",
             (REQUEST, "!length || *length < 0 ||", "!length ||"),
             (REQUEST, "static_cast<uint64_t>(*length) > limits.bulk_bytes_max", "*length > static_cast<int64_t>(limits.bulk_bytes_max)")),
    mutation("array inside an array is taken for a string", "Request.OnlyBulk*",
             (REQUEST, "  if (!line.starts_with('$')) {", "  if (!line.starts_with('$') && !line.starts_with('*')) {")),
    mutation("large argument counts as input", "Request.*Large*",
             (REQUEST, "  knows_length_ = false;\n  --left_count_;\n  state_ = State::kArray;", "  at_ += bulk_bytes_ + kLineEndBytes;\n  knows_length_ = false;\n  --left_count_;\n  state_ = State::kArray;")),
    mutation("large argument is looked for in the input", "Request.*Large*:Request.WhatAConnection*",
             (REQUEST, ".elsewhere = value.empty() ? \"\" : value.data(), .bytes", ".offset = at_, .bytes")),
    mutation("large argument stays the next one", "Request.*Large*",
             (REQUEST, "  knows_length_ = false;\n  --left_count_;\n  state_", "  --left_count_;\n  state_")),
    mutation("argument of just the size is not large", "Request.OnlyLarge*",
             (REQUEST, "bulk_bytes_ >= limits.large_bytes", "bulk_bytes_ > limits.large_bytes")),
    mutation("first arguments are lost when they become many", "Request.MoreArguments*",
             (SHORT_LIST, "    if (size_ == kInlineCount) many_.assign(few_.begin(), few_.end());\n", "")),
    mutation("memory of many arguments is kept", "Request.MemoryOf*",
             (SHORT_LIST, "many_ = std::vector<T>();", "many_ = {};")),
    mutation("memory of a long line is kept", "Request.MemoryOf*",
             (REQUEST, "std::string().swap(words_);", "words_ = std::string();")),
    mutation("words of inline commands move", "Request.*",
             (REQUEST, "  words_.reserve(line.size());  // so that they stay where they are\n", "")),
    mutation("parser promises less than is missing", "Request.SaysHowMuch*",
             (REQUEST, "return more(needed_bytes - there_bytes);", "return more(bulk_bytes_ - there_bytes);")),

    mutation("requests that are queued have no bound", "RequestQueue.IsBounded",
             (f"{REQUEST_QUEUE}.cc", " + (count() + 1) * sizeof(Request) > bytes_max) return false;", " > 100 * bytes_max) return false;")),
    mutation("arguments that are queued run into each other", "RequestQueue.*",
             (f"{REQUEST_QUEUE}.h", "        left.remove_prefix(*length);\n", "")),

    # Inline commands
    mutation("quote may be followed by anything", "Inline.Unbalanced*",
             (INLINE, "    if (at < line.size() && !is_blank(line[at])) return Word::kUnbalanced;\n", "")),
    mutation("open quote is closed by the line's end", "Inline.Unbalanced*",
             (INLINE, "  return std::string_view::npos;\n}\n\n}  // namespace", "  return text.size() - 1;\n}\n\n}  // namespace")),
    mutation("escape of a byte takes one digit", "Inline.DoubleQuotes",
             (INLINE, "hex_digit(text[2]) * 16 + hex_digit(text[3])), 4}", "hex_digit(text[2]) * 16 + hex_digit(text[3])), 3}")),
    mutation("single quotes know the escapes of double ones", "Inline.SingleQuotes",
             (INLINE, "    if (quote == '\"' && text[at] == '\\\\' && has_next) {", "    if (text[at] == '\\\\' && has_next) {")),

    # Numbers
    mutation("leading zero is part of an integer", "Numbers.WhatIsNoInteger",
             (NUMBERS, " || digits[0] == '0'", "")),
    mutation("number with something behind it taken for an integer", "Numbers.WhatIsNo*",
             ("src/server/text.h", "error != std::errc() || read != end", "error != std::errc()")),
    mutation("blank before a float", "Numbers.WhatIsNoFloat",
             (NUMBERS, "  if (is_blank(text[0])) return std::nullopt;\n", "")),
    mutation("not a number is one", "Numbers.WhatIsNoFloat",
             (NUMBERS, " || std::isnan(value)) return", ") return")),
    mutation("float too large becomes infinite", "Numbers.*Float*",
             (NUMBERS, "  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;\n", "")),
    mutation("zeros stay at a float's end", "Numbers.Printed*",
             (NUMBERS, "  text.remove_suffix(text.size() - 1 - text.find_last_not_of('0'));\n", "")),
    mutation("minus zero is printed", "Numbers.Printed*",
             (NUMBERS, "  if (text != \"-0\") return text.size();", "  if (text != \"--0\") return text.size();")),

    # Patterns
    mutation("star of a pattern takes nothing back", "Glob.*",
             (GLOB, "    t = ++star_text;", "    t = t + 1;")),
    mutation("range in one order only", "Glob.Matches",
             (GLOB, "std::minmax({fold(pattern[at]), fold(pattern[at + 2])})", "std::pair(fold(pattern[at]), fold(pattern[at + 2]))")),
    mutation("bytes of ranges are compared with their sign", "Glob.Bytes*",
             (GLOB, "using Fold = unsigned char (*)(char byte);\nunsigned char as_it_is(char byte) { return static_cast<unsigned char>(byte); }\nunsigned char in_lower_case", "using Fold = signed char (*)(char byte);\nsigned char as_it_is(char byte) { return static_cast<signed char>(byte); }\nsigned char in_lower_case"),
             (GLOB, "match_bracket(std::string_view pattern, unsigned char byte", "match_bracket(std::string_view pattern, signed char byte"),
             (GLOB, "match_one(std::string_view pattern, unsigned char byte", "match_one(std::string_view pattern, signed char byte")),
    mutation("case counts where it should not", "Glob.InAnyCase",
             (GLOB, "return as_it_is(to_lower(byte));", "return as_it_is(byte);")),
    mutation("stars at a pattern's end must take something", "Glob.Matches",
             (GLOB, "  return pattern.find_first_not_of('*', p) == kNone;", "  return p == pattern.size();")),

    # Replies
    mutation("part of a reply is written", "Reply.*",
             (REPLY, "  if (is_full_ || bytes > buffer_.size() - size_) {", "  bytes = pieces.begin()->size();\n  if (is_full_ || bytes > buffer_.size() - size_) {"),
             (REPLY, "    if (piece.empty()) continue;", "    if (piece.empty() || piece.size() > buffer_.size() - size_) continue;")),
    mutation("reply goes on behind what did not fit", "Reply.NothingFollows*",
             (REPLY, "  if (is_full_ || bytes", "  if (bytes")),
    mutation("line break in an error", "Reply.Lines:Refusal.*",
             (REPLY, "    if (c == '\\r' || c == '\\n') c = ' ';", "    if (c == '\\r') c = ' ';")),
    mutation("map of RESP2 counts pairs", "Reply.Aggregates",
             (REPLY, "header('*', 2 * count)", "header('*', count)")),

    # Commands and their arguments
    mutation("subcommand is a command of its own", "Command.Unknown",
             (COMMAND, "command == nullptr || command->is_subcommand()", "command == nullptr")),
    mutation("number of arguments is not checked", "Command.NumbersOf*",
             (COMMAND, "  if (!command->takes(arguments.size())) return refuse(Problem::kWrongArity, command->name);\n", "")),
    mutation("what a browser sends is answered", "Command.WhatBrowsers*",
             (COMMAND, "is_word(arguments[0], \"post\") ||", "")),
    mutation("probing ends at the first slot", "Command.AllAreFound*",
             (COMMAND, "slot = (slot + 1) % kSlotCount)\n    if", "slot = (slot + 2) % kSlotCount)\n    if")),
    mutation("last key counts from the wrong end", "Command.Keys",
             (COMMAND, "argument_count - static_cast<size_t>(-command.last_key)", "argument_count - 1 - static_cast<size_t>(-command.last_key)")),
    mutation("reply shows more than the client may send", "Refusal.*",
             (REFUSAL, "shown(argument, kMaxShownBytes - bytes)", "shown(argument)")),
    mutation("flags of commands without a name", "CommandInfo.AllFlags*",
             (COMMAND_INFO, "{kNoMulti, \"no_multi\"},", "")),
    mutation("two expiries of one value", "Arguments.SetOptions*",
             (ARGUMENTS, " || (unit != nullptr && unit != given)", "")),
    mutation("NX and XX at once", "Arguments.SetOptions*",
             (ARGUMENTS, "is_word(option, \"xx\") && request.condition != Condition::kIfAbsent", "is_word(option, \"xx\")")),
    mutation("expiry that is kept and given", "Arguments.SetOptions*",
             (ARGUMENTS, "is_word(option, \"keepttl\") && expires.unit == nullptr", "is_word(option, \"keepttl\")")),
    mutation("expiry of nothing is taken", "Arguments.Expiries*",
             (ARGUMENTS, "  if (*given <= 0) return refuse(Problem::kInvalidExpire, command.name);\n", "")),
    mutation("seconds overflow", "Arguments.*",
             (ARGUMENTS, "  if (__builtin_mul_overflow(given, unit.ms, &ms) ||\n      __builtin_add_overflow", "  (void)__builtin_mul_overflow(given, unit.ms, &ms);\n  if (__builtin_add_overflow")),
    mutation("time of now is forgotten", "Arguments.*",
             (ARGUMENTS, "unit.is_relative ? now_ms : 0", "unit.is_relative && now_ms < 0 ? now_ms : 0")),
    mutation("least number is negated", "Arguments.Increments",
             (ARGUMENTS, "    if (__builtin_sub_overflow(int64_t{0}, request.delta, &request.delta))\n      return refuse(Problem::kDecrementOverflow);", "    (void)__builtin_sub_overflow(int64_t{0}, request.delta, &request.delta);")),
    mutation("range ends one byte early", "Arguments.PartsOf*",
             (ARGUMENTS, "static_cast<uint64_t>(last - first) + 1}", "static_cast<uint64_t>(last - first)}")),
    mutation("value without a key of its own", "Arguments.Pairs",
             (ARGUMENTS, "  if (pairs.size() % 2 != 0) return refuse(Problem::kWrongArity, command.name);\n", "  (void)command;\n")),
    mutation("name of a client breaks the list of clients", "Administration.*",
             (ADMINISTRATION, "c >= '!' && c <= '~'", "c >= ' ' && c <= '~'")),
    mutation("pattern of a scan may be of any length", "Arguments.Scan",
             (ARGUMENTS, "      if (given.size() > kMaxPatternBytes) return refuse(Problem::kPatternTooLong);\n", "")),
    mutation("name of a client may be of any length", "Administration.NamesAre*",
             (ADMINISTRATION, "  if (text.size() > kMaxNameBytes) return refuse(Problem::kNameTooLong);\n", "")),
    mutation("client kills itself unasked", "Administration.Kills*",
             ("src/server/resp/administration.h", "bool skips_own = true;", "bool skips_own = false;")),
    mutation("shutdown that is to save and not to", "Administration.Shutdown",
             (ADMINISTRATION, " || (request.saves && request.saves_nothing)", "")),
]
