// spillway kv: the command line of the key-value store. docs/kv.md, "Command line".
#include "kv.h"

#include <algorithm>
#include <cstdio>

namespace tools {
namespace {

struct Option {
  std::string_view name;
  const char* argument;  // what --help calls it; "": the option takes none
  const char* doc;
};

struct KvSubcommand {
  std::string_view name;
  const char* words;
  const char* doc;   // a single line
  const char* more;  // the rest of --help: lines that end with a newline, or ""
  size_t words_least;
  size_t words_most;
  int (*function)(const KvLine&);
  std::span<const Option> options;
};

constexpr size_t kAny = ~size_t{0};

constexpr Option kMakeOptions[] = {
    {"--capacity", "SIZE", "the size of the store; required for a file that is not there yet, or is empty"},
    {"--grain", "SIZE",
     "records are rounded up to multiples of it: 512, 1K, 2K or 4K; default 512, or the device's block if "
     "that is more"},
    {"--segment", "SIZE",
     "the unit that is filled and collected: a power of two from 1M to 1G; default by the capacity"},
    {"--spare", "PERCENT", "the share of the segments that records do not fill: 0 to 90, default 10"},
    {"--cache", "",
     "make a cache: when it is full it drops what is oldest and was not read, instead of refusing puts"},
    {"--overwrite", "", "make the store even if the device has content, which is lost"},
};
constexpr Option kPutOptions[] = {
    {"--file", "FILE", "the value is the content of FILE, up to 4 GiB"},
    {"--if-absent", "", "put only if there is no such key"},
    {"--if-present", "", "put only if there is such a key"},
    {"--if-version", "VERSION", "put only if the key has this version, as put and get --version print it"},
    {"--expires", "SECONDS", "the key expires after this many seconds"},
    {"--flags", "NUMBER", "a number of 32 bits, which is kept with the value"},
};
constexpr Option kGetOptions[] = {{"--version", "", "print the version of the value instead of the value"}};
constexpr Option kListOptions[] = {
    {"--values", "", "print the values too, each after its key and a tab"},
    {"--prefix", "TEXT", "only keys that begin with TEXT"},
    {"--count", "NUMBER", "at most this many keys"},
    {"--null", "", "print keys and values as they are, with a byte 0 after each"},
};
constexpr Option kStatsOptions[] = {{"--json", "", "print one JSON object"}};
constexpr Option kLoadOptions[] = {
    {"--durability", "none|batch|sync",
     "of each put, default batch; when load has ended, everything is on the device for good"},
    {"--stats", "",
     "print at the end how long puts took, what was read and written, and all that stats prints"}};

// An option of every subcommand. The line of usage has only the subcommand's own options.
constexpr Option kKeyFile = {"--key-file", "FILE",
                             "the store is encrypted, or will be, with the key in FILE: 64 random bytes"};

// kv.h says how to add one.
constexpr KvSubcommand kSubcommands[] = {
    {"make", "DEVICE", "make an empty store",
     "A file that is not there is made. A device or file that has content is refused, a store among them.\n",
     1, 1, kv_make, kMakeOptions},
    {"get", "DEVICE KEY", "print a value",
     "Writes the value as it is, without a newline. Exit status 1: there is no such key.\n", 2, 2, kv_get,
     kGetOptions},
    {"put", "DEVICE KEY VALUE|-", "store a value",
     "The value is VALUE, or with - what standard input holds, up to 4 GiB. It is on the device for good\n"
     "when the command ends, which prints the key's new version. Exit status 1: a condition is not met, and\n"
     "nothing was done. Write -- before a KEY or VALUE that begins with -.\n",
     2, 3, kv_put, kPutOptions},
    {"delete",
     "DEVICE KEY...",
     "remove keys",
     "Exit status 1: one of them is not there; the others are removed.\n",
     2,
     kAny,
     kv_delete,
     {}},
    {"list", "DEVICE", "print all keys",
     "One on each line, in no order, as the store was when the command began. Control characters and\n"
     "backslashes are shown as \\xNN.\n",
     1, 1, kv_list, kListOptions},
    {"dump",
     "DEVICE FILE|-",
     "write all keys and values to a file",
     "As the store was when the command began. docs/formats/kv-dump.md describes the file, which must not\n"
     "be there yet.\n",
     2,
     2,
     kv_dump,
     {}},
    {"load", "DEVICE FILE|-", "put all keys and values of a dump",
     "Keys that are there get the dump's values. If the dump is damaged or cut short, all that comes before\n"
     "that place is loaded. docs/formats/kv-dump.md describes dumps.\n",
     2, 2, kv_load, kLoadOptions},
    {"stats", "DEVICE", "print what a store holds and what it takes", "", 1, 1, kv_stats, kStatsOptions},
    {"compact",
     "DEVICE",
     "reclaim the room of what was overwritten and removed",
     "Collects segments until nothing more is gained. A store does that by itself when it needs room.\n",
     1,
     1,
     kv_compact,
     {}},
    {"check",
     "DEVICE",
     "verify a store",
     "Reads every segment and record, and compares the index with them. Prints a line for each finding.\n"
     "Writes nothing, so the device may be one that cannot be written to. Exit status: 0 clean, 1 there\n"
     "are findings. The same as spillway check.\n",
     1,
     1,
     kv_check,
     {}},
};

// `program`: the words of the command line that come before the subcommand's name.
std::string usage(const KvSubcommand& subcommand, std::string_view program) {
  std::string text = concat(program, ' ', subcommand.name);
  for (const Option& option : subcommand.options)
    text += concat(" [", option.name, *option.argument != 0 ? " " : "", option.argument, ']');
  return concat(text, ' ', subcommand.words);
}

void print_help(const KvSubcommand& subcommand, std::string_view program) {
  std::printf(
      "usage: %s\n\n%s: %s.\n%sDEVICE is a path or a device string (docs/storage.md). SIZE takes K, M, G, "
      "T.\n",
      usage(subcommand, program).c_str(), subcommand.name.data(), subcommand.doc, subcommand.more);
  std::puts("");
  std::vector<Option> options(subcommand.options.begin(), subcommand.options.end());
  options.push_back(kKeyFile);
  for (const Option& option : options)
    std::printf("  %-29s %s\n", concat(option.name, ' ', option.argument).c_str(), option.doc);
}

void print_help() {
  std::puts("usage: spillway kv SUBCOMMAND DEVICE ...\n");
  for (const KvSubcommand& subcommand : kSubcommands)
    std::printf("  spillway kv %-7s %-20s %s\n", subcommand.name.data(), subcommand.words, subcommand.doc);
  std::puts(
      "\nDEVICE is a path or a device string (docs/storage.md), which no other process may use meanwhile.\n"
      "'spillway kv SUBCOMMAND --help' lists a subcommand's options. Exit status: 0 done; 1 the key is not "
      "there,\n"
      "or the device failed or is in use; 2 wrong input, nothing was done.");
}

const Option* find_option(const KvSubcommand& subcommand, std::string_view name) {
  if (name == kKeyFile.name) return &kKeyFile;
  const auto found = std::ranges::find(subcommand.options, name, &Option::name);
  return found == subcommand.options.end() ? nullptr : &*found;
}

// Fills in `line`'s words and options. False: help was asked for. Throws WrongInput.
bool parse(const KvSubcommand& subcommand, Arguments arguments, KvLine& line) {
  bool is_over = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (is_over || !word.starts_with('-') || word == "-") {
      line.words.push_back(word);
    } else if (word == "--") {
      is_over = true;
    } else if (word == "--help" || word == "-h") {
      return false;
    } else {
      const size_t equals = word.find('=');
      const Option* const option = find_option(subcommand, word.substr(0, equals));
      if (option == nullptr)
        line.refuse(
            concat("there is no option '", printable(word), "'; see spillway kv ", line.name, " --help"));
      std::string_view value;
      if (equals != std::string_view::npos)
        value = word.substr(equals + 1);
      else if (*option->argument != 0 && ++i < arguments.size())
        value = arguments[i];
      else if (*option->argument != 0)
        line.refuse(concat(option->name, " needs a ", option->argument));
      if (*option->argument == 0 && equals != std::string_view::npos)
        line.refuse(concat(option->name, " takes no argument"));
      if (!line.options.emplace(option->name, value).second)
        line.refuse(concat(option->name, " is given twice"));
    }
  }
  return true;
}

int run(const KvSubcommand& subcommand, Arguments arguments, std::string_view program = "spillway kv") {
  KvLine line;
  line.name = subcommand.name;
  if (!parse(subcommand, arguments, line)) {
    print_help(subcommand, program);
    return 0;
  }
  if (line.words.size() < subcommand.words_least || line.words.size() > subcommand.words_most)
    throw WrongInput(concat("usage: ", usage(subcommand, program)));
  line.device = line.words[0];
  if (line.has(kKeyFile.name)) line.device = under_key(line.device, line.options.at(kKeyFile.name));
  return subcommand.function(line);
}

}  // namespace

void KvLine::refuse(std::string_view what) const { throw WrongInput(concat("kv ", name, ": ", what)); }

uint64_t KvLine::number(std::string_view option, uint64_t least, uint64_t most) const {
  return number_argument(concat("kv ", name, ": ", option), options.at(option), least, most);
}

uint64_t KvLine::size(std::string_view option) const {
  return size_argument(concat("kv ", name, ": ", option), options.at(option));
}

std::string escaped(std::string_view key) {
  std::string text;
  for (const char c : key) text += c == '\\' ? "\\x5c" : printable(std::string_view(&c, 1));
  return text;
}

int kv(Arguments arguments) {
  const KvSubcommand* const subcommand = find_subcommand(kSubcommands, arguments, "kv");
  if (subcommand != nullptr) return run(*subcommand, arguments.subspan(1));
  print_help();
  return 0;
}

int check(Arguments arguments) {
  return run(*std::ranges::find(kSubcommands, std::string_view("check"), &KvSubcommand::name), arguments,
             "spillway");
}

}  // namespace tools
