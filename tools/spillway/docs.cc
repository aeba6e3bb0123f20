// spillway docs: the reference pages that are made from the data files of src/base. `make docs` writes
// them to docs/; tests/docs compares.
#include <cstdio>

#include "base/probe.h"
#include "base/statistics.h"
#include "command.h"

namespace tools {
namespace {

// In a table cell a bar would end the cell.
std::string cell(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

// A row for each owner.
std::string others_table() {
  std::string table = "| variables | of |\n|---|---|\n";
  for (const auto& [name, whose] : base::others_variables())
    table +=
        concat("| `", base::kVariablePrefix, name, name.ends_with('_') ? "...`" : "`", " | ", whose, " |\n");
  return table;
}

std::string options_page() {
  std::string page =
      "# Options\n\n"
      "Made by `make docs` from src/base/options.inc.\n\n"
      "Each option is a flag of `spillway run` and an environment variable; a flag goes before the variable, "
      "and\n"
      "a program that is started without `spillway run` reads the variables itself. A variable that begins "
      "with\n"
      "`SPILLWAY_` and is not in this table is refused, so that a misspelt one is noticed; those of "
      "[other parts of\n"
      "Spillway](#variables-of-others) are passed over. A flag without an argument is `1` in its variable.\n"
      "SIZE takes K, M, G and T (powers of 1024). [spill.md](spill.md#what-is-spilled) says what frames and "
      "plain memory are.\n\n"
      "| flag | variable | default | meaning |\n|---|---|---|---|\n";
  for (size_t i = 0; i < base::option_count(); ++i) {
    const base::OptionInfo& option = base::option_info(i);
    std::string value = default_of(option);
    page += concat("| `", cell(flag_with_argument(option)), "` | `", variable_name(option), "` | ",
                   value.empty() ? "" : "`" + value + "`", " | ", cell(option.doc), " |\n");
  }
  page += "\n## Variables of others\n\n" + others_table();
  return page;
}

// What stands above the tables.
constexpr std::string_view kStatisticsText = R"(# Statistics

Made by `make docs` from src/base/statistics.inc.

`--stats FILE` writes one JSON object, nested by folder: `{"spill": {"allocated_bytes": 4096, ...}, ...}`. FILE is replaced when
all is written; a pipe, a terminal or `/dev/stdout` is written to as it is. Each
number is exact; together they are not a snapshot of one moment. (While the program runs, `spillway top` sees what the heap has allocated
within 64 KiB for each thread.) Names that end in `_bytes` are bytes, all
others count. A counter says what has happened since the start, and never falls; a gauge what is now, was at most, or was
chosen; [Prometheus](debugging.md#spillway-top) can read both.

A list of sites says where in the code something was counted, most often first: `{"count": 7, "over": 0, "module":
"/usr/lib/libm.so.6", "offset": "0x1a2b", "symbol": "cos"}`. Module and offset are what `addr2line -e MODULE OFFSET`
takes; the symbol is an exported function, or empty. Of the count, `over` at most belong to other sites: not 0 only
when there were more than 64 of them.

A curve says how many misses there would have been with more memory, about:
`[{"memory_bytes": 16777216, "misses": 340163}, {"memory_bytes": 17602560, "misses": 334879}, ...]`, from what there was
to 64 times as much in frames. It is made from a sample of the pages that came back after they had left: it knows nothing
of less memory, and is empty before a hundred misses. Where runs were made to compare (tests/e2e/curve), it was within 3 %
of the first point's misses; a loop over all data needs all of it, and where that is is told as closely as the points lie.

A word says what was chosen: `"clock"`.

[ARCHITECTURE.md](ARCHITECTURE.md#nouns) says what frames, slots and other nouns are.
)";

std::string statistics_page() {
  std::string page(kStatisticsText);
  std::string_view folder;
  const auto add_row = [&](const base::StatisticInfo& info, std::string_view type) {
    page += concat("| `", info.folder, ".", info.name, "` | ", type, " | ", cell(info.doc), " |\n");
  };
  for (size_t i = 0; i < base::kStatisticCount; ++i) {
    const base::StatisticInfo& statistic = base::kStatisticInfo[i];
    if (folder != statistic.folder) {
      folder = statistic.folder;
      page += concat("\n## ", folder, "\n\n| key | type | meaning |\n|---|---|---|\n");
    }
    add_row(statistic, statistic.is_counter ? "counter" : "gauge");
    // As in the file: lists after all numbers of their folder.
    if (i + 1 < base::kStatisticCount && folder == base::kStatisticInfo[i + 1].folder) continue;
    for (const base::StatisticInfo& list : base::kSitesInfo)
      if (folder == list.folder) add_row(list, "sites");
    for (const base::StatisticInfo& curve : base::kCurveInfo)
      if (folder == curve.folder) add_row(curve, "curve");
    for (const base::StatisticInfo& word : base::kWordInfo)
      if (folder == word.folder) add_row(word, "word");
  }
  return page;
}

std::string probes_page() {
  std::string page =
      "# Probes\n\n"
      "Made by `make docs` from src/base/probes.inc.\n\n"
      "Places in programs, stores and servers where bpftrace and gdb may listen while they run (USDT, "
      "provider `spillway`): [debugging.md](debugging.md#probes) says how.\n"
      "Where nobody listens a probe is one instruction that does nothing. Who listens stops the thread for "
      "a microsecond or two each time (gdb for far longer), and at\n"
      "`eviction`, `rescue`, `write_failed` and `native_end` others that want the same part of the cache "
      "wait for it.\n\n"
      "Arguments are 64 bits without a sign, in this order. The address of a page is its number times the "
      "page's size (`--page`; 4096 in preload mode).\n";
  std::string_view folder;
  for (const base::ProbeInfo& probe : base::kProbeInfo) {
    if (folder != probe.folder) {
      folder = probe.folder;
      page += concat("\n## ", folder, "\n\n| probe | fires when | arguments |\n|---|---|---|\n");
    }
    page += concat("| `", probe.name, "` | ", cell(probe.doc), " | ");
    for (const base::ProbeInfo::Argument& argument : probe.arguments)
      if (argument.name != nullptr)
        page +=
            concat(&argument == probe.arguments ? "" : "<br>", "`", argument.name, "`: ", cell(argument.doc));
    page += " |\n";
  }
  return page;
}

struct Page {
  std::string_view name;
  std::string (*text)();
};
constexpr Page kPages[] = {
    {"options", options_page}, {"statistics", statistics_page}, {"probes", probes_page}};

}  // namespace

int docs(Arguments arguments) {
  const std::string_view name = arguments.size() == 1 ? arguments[0] : "";
  if (name == "--help" || name == "-h") {
    std::puts(
        "usage: spillway docs options|statistics|probes\n\n"
        "Prints a reference page in Markdown: the options of spillway run, what --stats tells, or where a "
        "tracer can be attached (probes).");
    return 0;
  }
  for (const Page& page : kPages) {
    if (page.name != name) continue;
    std::fputs(page.text().c_str(), stdout);
    return 0;
  }
  throw WrongInput(
      "docs prints one page; write spillway docs options, spillway docs statistics, or spillway docs probes");
}

}  // namespace tools
