#include "command_line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/options.h"

namespace spillcc {

namespace {

// Options of clang whose value is the next argument: it is no input, whatever it looks like.
constexpr std::array kTakesNext = {
    "-o",
    "-x",
    "-I",
    "-L",
    "-D",
    "-U",
    "-F",
    "-B",
    "-T",
    "-u",
    "-z",
    "-e",
    "-A",
    "-l",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-include",
    "-imacros",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isystem",
    "-isysroot",
    "-iquote",
    "-imultilib",
    "-cxx-isystem",
    "-stdlib++-isystem",
    "-ivfsoverlay",
    "-include-pch",
    "-Xclang",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xanalyzer",
    "-mllvm",
    "-target",
    "-arch",
    "-gcc-toolchain",
    "-rpath",
    "--param",
    "--sysroot",
    "-aux-info",
    "-serialize-diagnostics",
    "--serialize-diagnostics",
    "-dependency-file",
    "-working-directory",
    "-G",
    "-Tbss",
    "-Tdata",
    "-Ttext",
    "-Xopenmp-target",
    "-Xcuda-fatbinary",
    "-Xcuda-ptxas",
    "-h",
    "-install_name",
    "-undefined",
    "-dumpdir",
    "--config",
};

// Options after which nothing is linked.
constexpr std::array kStopsBeforeLink = {
    "-c",
    "-S",
    "-E",
    "-M",
    "-MM",
    "-fsyntax-only",
    "--compile",
    "--assemble",
    "--preprocess",
    "--precompile",
    "--analyze",
    "-emit-ast",
    "-emit-pch",
    "-verify-pch",
    "-emit-interface-stubs",
    "-extract-api",
    "-rewrite-objc",
    "-module-file-info",
};

constexpr std::array kNoRuntime = {"-nostdlib", "-nodefaultlibs", "-nolibc", "--no-standard-libraries"};

template <size_t N>
bool contains(const std::array<const char*, N>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool is_header_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view ending = name.substr(dot + 1);
  return ending == "h" || ending == "hh" || ending == "hpp" || ending == "hxx" || ending == "H";
}

struct Parsed {
  std::vector<std::string> passed_on;
  std::string error;
  bool spill = true;
  std::string persist;  // -fspill-persist: flush, sample or record; empty: no
  bool stops_before_link = false;
  bool relocatable = false;  // -r: objects become one
  bool no_runtime = false;   // -nostdlib or the like
  bool names_c_library = false;
  bool lto = false;
  bool thin_lto = false;
  bool unoptimised = false;  // -O0
  std::string narrow;        // the option that asks for a program that is not of 64 bits
  std::string foreign;       // the option that asks for a program for another processor or system
  bool emulated_tls = false;
  bool fat_objects = false;
  std::string thin_index;   // -fthinlto-index=: clang optimises one module of a ThinLTO link
  std::string static_link;  // the option that asks for a static link
  bool shared = false;
  bool has_input = false;    // something to compile or link, or a request to the linker
  bool only_headers = true;  // all inputs, if any, are headers
  bool header_language = false;
  bool other_language = false;  // -x gives a language that is no header's; names of inputs do not count
  std::string linker;           // value of -fuse-ld=
  std::string linker_path;      // value of --ld-path=, which overrides -fuse-ld=
  std::vector<std::string> sanitizers;  // requested, and not cancelled later
  std::string late_code;  // the option by which clang inserts calls or accesses after the plugin ran
  std::string plugin_options;
  bool satc = false;           // -fspill-translation=satc
  std::string bodies;          // -fspill-bodies: 1 or 2; empty: the plugin's default
  uint64_t globals_bytes = 0;  // globals of that size and more are spilled; 0: none
};

// The size that -fspill-globals means without =SIZE: as for allocations of libraries, and for mmap.
constexpr uint64_t kGlobalsBytes = 64 << 10;

void refuse(Parsed& parsed, std::string message) {
  if (parsed.error.empty()) parsed.error = std::move(message);
}

// Handles options that are spillcc's own. Returns false for all others.
bool parse_own(std::string_view argument, Parsed& parsed) {
  if (argument == "-fno-spill") {
    parsed.spill = false;
  } else if (argument == "-fspill") {
    parsed.spill = true;
  } else if (argument.starts_with("-fspill-translation=")) {
    const std::string_view mode = argument.substr(argument.find('=') + 1);
    parsed.satc = mode == "satc";
    if (!parsed.satc && mode != "table")
      refuse(parsed, std::string(argument) + ": unknown translation; use table or satc");
  } else if (argument.starts_with("-fspill-bodies=")) {
    parsed.bodies = argument.substr(argument.find('=') + 1);
    if (parsed.bodies != "1" && parsed.bodies != "2")
      refuse(parsed,
             std::string(argument) + ": not a number of bodies; use -fspill-bodies=1 or -fspill-bodies=2");
  } else if (argument == "-fspill-globals") {
    parsed.globals_bytes = kGlobalsBytes;
  } else if (argument == "-fno-spill-globals") {
    parsed.globals_bytes = 0;
  } else if (argument.starts_with("-fspill-globals=")) {
    const auto bytes = base::parse_size(argument.substr(argument.find('=') + 1));
    if (!bytes || *bytes == 0)
      refuse(parsed, std::string(argument) + ": not a size; give one such as 64K");
    else
      parsed.globals_bytes = *bytes;
  } else if (argument == "-fspill-persist") {
    parsed.persist = "flush";
  } else if (argument == "-fno-spill-persist") {
    parsed.persist.clear();
  } else if (argument.starts_with("-fspill-persist=")) {
    parsed.persist = argument.substr(argument.find('=') + 1);
    if (parsed.persist != "sample" && parsed.persist != "record")
      refuse(parsed, std::string(argument) + ": unknown; use -fspill-persist, or =sample or =record with it");
  } else {
    return false;
  }
  return true;
}

// The last target on the command line counts. `option`: the option as it was given, with its value.
void inspect_target(std::string option, std::string_view target, Parsed& parsed) {
  const bool fits = (target.starts_with("x86_64") || target.starts_with("amd64")) &&
                    target.find("linux") != std::string_view::npos && !target.ends_with("x32");
  parsed.foreign = fits ? "" : std::move(option);
}

// `names`: of sanitizers, separated by commas.
void inspect_sanitizers(std::string_view names, bool are_asked_for, Parsed& parsed) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (name.empty() || name == "none") continue;
    std::erase_if(parsed.sanitizers,
                  [&](const std::string& known) { return known == name || name == "all"; });
    if (are_asked_for) parsed.sanitizers.emplace_back(name);
  }
}

// Looks only at options of clang that spillcc's decisions depend on; a later one overrides an earlier one, as in clang.
void inspect_option(std::string_view argument, Parsed& parsed) {
  if (argument.starts_with("-fsanitize=") || argument.starts_with("-fno-sanitize=")) {
    inspect_sanitizers(argument.substr(argument.find('=') + 1), argument.starts_with("-fsanitize="), parsed);
  } else if (argument.starts_with("-fsanitize-coverage=") || argument == "-fmemory-profile" ||
             argument.starts_with("-fmemory-profile=")) {
    parsed.late_code = argument;
  } else if (argument == "-fno-memory-profile") {
    parsed.late_code.clear();
  } else if (argument == "-flto" || argument.starts_with("-flto=")) {
    parsed.lto = true;
    parsed.thin_lto = argument == "-flto=thin";
  } else if (argument == "-fno-lto") {
    parsed.lto = parsed.thin_lto = false;
  } else if (argument.starts_with("-fthinlto-index=")) {
    parsed.thin_index = argument;
  } else if (argument == "-ffat-lto-objects" || argument == "-fno-fat-lto-objects") {
    parsed.fat_objects = argument == "-ffat-lto-objects";
  } else if (argument == "-femulated-tls" || argument == "-fno-emulated-tls") {
    parsed.emulated_tls = argument == "-femulated-tls";
  } else if (argument.starts_with("-O")) {
    parsed.unoptimised = argument == "-O0";
  } else if (argument.starts_with("-fuse-ld=")) {
    parsed.linker = argument.substr(argument.find('=') + 1);
  } else if (argument.starts_with("--ld-path=")) {
    parsed.linker_path = argument.substr(argument.find('=') + 1);
  } else if (argument == "-static" || argument == "-static-pie" || argument == "--static") {
    parsed.static_link = argument;
  } else if (argument == "-shared" || argument == "--shared") {
    parsed.shared = true;
  } else if (contains(kStopsBeforeLink, argument) || argument.starts_with("-print-") ||
             argument.starts_with("--print-") || argument == "-dumpmachine" || argument == "-dumpversion") {
    parsed.stops_before_link = true;
  } else if (argument == "-r") {
    parsed.relocatable = true;
  } else if (contains(kNoRuntime, argument)) {
    parsed.no_runtime = true;
  } else if (argument == "-m32" || argument == "-mx32" || argument == "-m16") {
    parsed.narrow = argument;
  } else if (argument == "-m64") {
    parsed.narrow.clear();
  } else if (argument.starts_with("--target=")) {
    inspect_target(std::string(argument), argument.substr(argument.find('=') + 1), parsed);
  } else if (argument.starts_with("-Wl,") || (argument.starts_with("-l") && argument.size() > 2)) {
    parsed.has_input = true;
    parsed.only_headers = false;
    parsed.names_c_library |= argument == "-lc";
  }
}

void inspect_value(std::string_view option, std::string_view value, Parsed& parsed) {
  if (option == "-x") {
    parsed.header_language |= value.ends_with("-header");
    parsed.other_language = value != "none" && !value.ends_with("-header");
  } else if (option == "-target") {
    inspect_target("-target " + std::string(value), value, parsed);
  } else if (option == "-l" || option == "-Xlinker") {
    parsed.has_input = true;
    parsed.only_headers = false;
  }
}

Parsed parse(const std::vector<std::string>& arguments) {
  Parsed parsed;
  bool only_inputs = false;  // after "--"
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool is_option = !only_inputs && argument.size() > 1 && argument[0] == '-';
    if (is_option && parse_own(argument, parsed)) continue;
    parsed.passed_on.push_back(argument);
    if (!is_option) {
      parsed.has_input = true;
      parsed.only_headers &= is_header_name(argument) && !parsed.other_language;
    } else if (argument == "--") {
      only_inputs = true;
    } else if (contains(kTakesNext, argument)) {
      if (i + 1 == arguments.size()) break;
      const std::string& value = arguments[++i];
      if (argument == "-mllvm" && value.starts_with("-spill-")) {
        parsed.passed_on.pop_back();
        parsed.plugin_options += value + ' ';
        continue;
      }
      parsed.passed_on.push_back(value);
      inspect_value(argument, value, parsed);
    } else {
      inspect_option(argument, parsed);
      if (argument.starts_with("-x")) inspect_value("-x", std::string_view(argument).substr(2), parsed);
    }
  }
  // With -shared clang links a shared library, also with -static.
  if (parsed.shared) parsed.static_link.clear();
  return parsed;
}

bool instruments(const Parsed& parsed) { return parsed.spill || !parsed.persist.empty(); }

// Refuses options that cannot be combined. Called after all arguments are parsed, since a later one may cancel an
// earlier one.
void refuse_combinations(Parsed& parsed) {
  if (!instruments(parsed)) return;
  const std::string without = parsed.spill ? "-fno-spill" : "-fno-spill-persist";
  if (!parsed.narrow.empty())
    refuse(parsed, parsed.narrow + ": Spillway is for 64-bit programs; leave it out, or give " + without);
  if (!parsed.foreign.empty())
    refuse(parsed,
           parsed.foreign + ": Spillway is for programs of x86-64 Linux; leave it out, or give " + without);
  if (parsed.emulated_tls)
    refuse(parsed,
           "-femulated-tls: the runtime's thread-local variables are native ones; leave it out, or give " +
               without);
  if (parsed.lto && parsed.fat_objects)
    refuse(parsed, "-ffat-lto-objects: the half that is not bitcode would not be instrumented; leave it out");
  if (!parsed.thin_index.empty())
    refuse(parsed, parsed.thin_index +
                       ": clang takes no plugin there; let the linker do all of it (-flto=thin), or give " +
                       without);
  const std::string sanitizer = parsed.sanitizers.empty() ? "" : "-fsanitize=" + parsed.sanitizers.front();
  for (const std::string& option : {sanitizer, parsed.late_code})
    if (parsed.spill && !option.empty())
      refuse(parsed,
             option + ": sanitizers and spilling do not go together; leave it out, or give -fno-spill");
  if (parsed.spill && parsed.satc && parsed.bodies == "2")
    refuse(parsed,
           "-fspill-bodies=2: only what translates by the table has two bodies; leave one of the two options "
           "out");
  if (parsed.spill && parsed.satc && parsed.globals_bytes != 0)
    refuse(parsed,
           "-fspill-globals: only the table translates addresses of globals; leave it or "
           "-fspill-translation=satc out");
  if (!parsed.persist.empty() && !parsed.static_link.empty())
    refuse(parsed, parsed.static_link +
                       ": -fspill-persist has a shared library only; leave one of the two options out");
}

// `linker`: a name or a path; of a path the last part counts.
bool names_lld(std::string_view linker) {
  return linker.substr(linker.rfind('/') + 1).find("lld") != std::string_view::npos;
}

bool links_by_lld(const Parsed& parsed) { return names_lld(parsed.linker) || names_lld(parsed.linker_path); }

// The option that chose the linker; empty: no option, so clang chooses.
std::string linker_option(const Parsed& parsed) {
  if (!parsed.linker_path.empty()) return "--ld-path=" + parsed.linker_path;
  return parsed.linker.empty() ? "" : "-fuse-ld=" + parsed.linker;
}

// The arguments that link the runtimes.
std::vector<std::string> runtime_arguments(const Parsed& parsed, const std::string& libraries) {
  // The runtime calls functions of libm, and C programs may be linked without -lm.
  if (!parsed.static_link.empty())
    return {"@" + libraries + "/spillway-static.options", libraries + "/spillway-static.o", "-lm"};
  std::vector<std::string> words = {"--push-state", "--no-as-needed"};
  if (parsed.spill) words.push_back(libraries + "/libspillway.so");
  if (!parsed.persist.empty()) words.push_back(libraries + "/libspillway_persist.so");
  words.insert(words.end(), {"--pop-state", "-rpath", libraries});
  std::vector<std::string> result;
  for (const std::string& word : words) result.insert(result.end(), {"-Xlinker", word});
  return result;
}

// The plugin's options: those that were given (-mllvm -spill-...), then those that spillcc's own options stand for.
std::string plugin_options(const Parsed& parsed) {
  std::string result = parsed.plugin_options;
  if (parsed.spill && parsed.globals_bytes != 0)
    result += "-spill-globals=" + std::to_string(parsed.globals_bytes) + ' ';
  if (parsed.spill && parsed.satc) result += "-spill-satc ";
  if (parsed.spill && !parsed.bodies.empty()) result += "-spill-bodies=" + parsed.bodies + ' ';
  if (!parsed.persist.empty()) result += "-spill-persist=" + parsed.persist + ' ';
  if (!parsed.spill) result += "-spill-translate=0 ";
  return result;
}

}  // namespace

std::expected<Plan, std::string> plan(const std::vector<std::string>& arguments, const Toolchain& toolchain) {
  Parsed parsed = parse(arguments);
  refuse_combinations(parsed);
  if (!parsed.error.empty()) return std::unexpected(parsed.error);
  if (!instruments(parsed)) return Plan{std::move(parsed.passed_on), ""};

  const bool links =
      parsed.has_input && !parsed.stops_before_link && !(parsed.header_language || parsed.only_headers);
  std::vector<std::string> result = {"--start-no-unused-arguments"};
  if (parsed.spill) result.insert(result.end(), {"-cxx-isystem", toolchain.libraries + "/spillway-c++"});
  // With LTO the plugin runs in the linker, but the functions that our headers have objects compile must be hidden
  // before the linker resolves symbols.
  if (!parsed.lto)
    result.push_back("-fpass-plugin=" + toolchain.plugin);
  else if (parsed.spill)
    result.push_back("-fpass-plugin=" + toolchain.libraries + "/libspillway-hide.so");
  // Why lld is needed; empty: it is not. With LTO it is needed for -r, too: the objects are optimised then.
  const std::string why = parsed.lto           ? "link-time optimisation"
                          : parsed.relocatable ? ""
                                               : parsed.static_link;
  if (links && (!why.empty() || links_by_lld(parsed))) {
    const std::string chosen = linker_option(parsed);
    if (chosen.empty()) {
      result.push_back("-fuse-ld=lld");
    } else if (!links_by_lld(parsed)) {
      return std::unexpected(chosen + ": " + why + " needs lld; give -fuse-ld=lld instead, or leave out " +
                             (parsed.lto ? "-flto" : parsed.static_link));
    }
    result.insert(result.end(), {"-Xlinker", "--load-pass-plugin=" + toolchain.plugin});
    // ThinLTO's back ends do not run the plugin at -O0.
    if (parsed.thin_lto && parsed.unoptimised) result.insert(result.end(), {"-Xlinker", "--lto-O1"});
  }
  // libtool gives -nostdlib and then names all libraries itself: -lc tells that the runtime is wanted.
  if (links && !parsed.relocatable && (!parsed.no_runtime || parsed.names_c_library)) {
    const std::vector<std::string> runtime = runtime_arguments(parsed, toolchain.libraries);
    result.insert(result.end(), runtime.begin(), runtime.end());
  }
  result.push_back("--end-no-unused-arguments");
  result.insert(result.end(), parsed.passed_on.begin(), parsed.passed_on.end());
  return Plan{std::move(result), plugin_options(parsed)};
}

}  // namespace spillcc
