#include "serve_options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "kv.h"
#include "program.h"
#include "sys/memory.h"
#include "sys/threads.h"

namespace tools {
namespace {

[[noreturn]] void refuse(std::string_view what) { throw WrongInput(concat("serve: ", what)); }

// What is collected from all words of the line, for what depends on more than one of them.
struct Line {
  ServeOptions& options;
  std::optional<uint16_t> port;         // -p
  std::vector<std::string> interfaces;  // -l
  bool has_tls_ports = false;           // -Z
  std::optional<std::string> key_file;  // --key-file
};

void note_without_effect(Line& line, std::string_view what) {
  std::string& all = line.options.without_effect;
  all += concat(all.empty() ? "" : ", ", printable(what));
}

using Set = void (*)(Line& line, std::string_view name, std::string_view value);

struct Option {
  std::string_view name;
  std::string_view short_name;  // that of memcached's option
  const char* argument;         // "": it takes none
  const char* doc;              // null: it is left out of the help
  Set set;
};

uint64_t number_of(std::string_view name, std::string_view text, uint64_t least, uint64_t most) {
  return number_argument(concat("serve: ", name), text, least, most);
}

uint64_t size_of(std::string_view name, std::string_view text, uint64_t least, uint64_t most) {
  const uint64_t size = size_argument(concat("serve: ", name), text);
  if (size < least || size > most)
    refuse(concat(name, ": ", printable(text), " is not from ", readable_bytes(least), " to ",
                  readable_bytes(most)));
  return size;
}

kv::Durability durability_of(std::string_view text) {
  if (const auto durability = durability_called(text)) return *durability;
  refuse(concat("--durability: '", printable(text), "' is not none, batch or sync"));
}

server::Accounts accounts_in(std::string_view name, std::string_view path) {
  auto accounts = server::Accounts::read(std::string(path));
  if (!accounts) refuse(concat(name, ": ", printable(accounts.error().message)));
  return std::move(*accounts);
}

constexpr uint64_t kSecondNs = 1'000'000'000;

void set_idle(Line& line, std::string_view name, std::string_view seconds) {
  const uint64_t idle_ns = number_of(name, seconds, 0, 1'000'000'000) * kSecondNs;
  line.options.server.settings.stream.idle_ns = idle_ns == 0 ? task::kNever : idle_ns;
}

// Calls `use` for the words between commas, in order: at least one, which may be empty.
template <class Use>
void for_each_word(std::string_view words, const Use& use) {
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find(',', at), words.size());
    use(words.substr(at, end - at));
    at = end + 1;
  }
}

// memcached's -o NAME[=VALUE],...
void set_extended(Line& line, std::string_view name, std::string_view words) {
  for_each_word(words, [&](std::string_view word) {
    constexpr std::string_view kIdle = "idle_timeout=";
    if (word.starts_with(kIdle))
      set_idle(line, concat(name, " idle_timeout"), word.substr(kIdle.size()));
    else
      note_without_effect(line, concat(name, ' ', word));
  });
}

// An option about memcached's own threads, memory or sockets.
void set_nothing(Line& line, std::string_view name, std::string_view) { note_without_effect(line, name); }

// The version of memcached whose protocol is spoken. Clients read it to know what they may ask.
constexpr std::string_view kSpokenVersion = "1.6.18";
constexpr uint64_t kMinItemBytes = 1 << 10;

constexpr Option kOptions[] = {
    {"--storage", "", "DEVICE", "the store: a path or a device string (docs/storage.md)",
     [](Line& line, auto name, auto value) {
       if (!line.options.storage.empty())
         refuse(
             concat(name, " is given twice; give one device, which stripe:[DEVICE,DEVICE] makes of several"));
       line.options.storage = value;
     }},
    {"--key-file", "", "FILE",
     "the store is encrypted, or will be, with the key in the file: 64 random bytes",
     [](Line& line, auto, auto value) { line.key_file = value; }},
    {"--capacity", "", "SIZE",
     "makes a store of this size if there is none; refuses a device or file with other content",
     [](Line& line, auto name, auto value) {
       line.options.capacity_bytes = size_of(name, value, 8 << 20, uint64_t{1} << 50);
     }},
    {"--cache", "", "",
     "with --capacity: makes a cache; when it is full it drops what is oldest and was not read",
     [](Line& line, auto, auto) { line.options.is_cache = true; }},
    {"--memcache", "", "ADDRESS", "listens for clients of memcached; may be given again",
     [](Line& line, auto, auto value) { line.options.server.memcache.emplace_back(value); }},
    {"--resp", "", "ADDRESS", "listens for clients of Redis; may be given again",
     [](Line& line, auto, auto value) { line.options.server.resp.emplace_back(value); }},
    {"--metrics", "", "ADDRESS",
     "listens for Prometheus, which asks for http://ADDRESS/metrics, and browsers, for http://ADDRESS/",
     [](Line& line, auto, auto value) { line.options.server.metrics.emplace_back(value); }},
    {"--password-file", "-Y", "FILE",
     "clients have to say who they are: lines USER:PASSWORD or PASSWORD, read again at SIGHUP; or "
     "SPILLWAY_PASSWORD",
     [](Line& line, auto name, auto value) {
       line.options.server.password_file = value;
       line.options.server.settings.accounts = accounts_in(name, value);
     }},
    {"--tls-cert", "", "FILE", "the certificate for addresses tls:ADDRESS, PEM; read again at SIGHUP",
     [](Line& line, auto, auto value) { line.options.server.tls.certificate = value; }},
    {"--tls-key", "", "FILE", "the key of the certificate, if that is not in the same file",
     [](Line& line, auto, auto value) { line.options.server.tls.key = value; }},
    {"--tls-ca", "", "FILE", "clients need a certificate from one of these authorities",
     [](Line& line, auto, auto value) { line.options.server.tls.client_authorities = value; }},
    {"--durability", "", "none|batch|sync",
     "what a power cut may take of what was acknowledged: some, the last 10 ms (default), nothing",
     [](Line& line, auto, auto value) { line.options.store.durability = durability_of(value); }},
    {"--memory", "", "SIZE",
     "the memory of the process, at least 32M: keys, connections, items in use; default a quarter of what is "
     "free",
     [](Line& line, auto name, auto value) {
       line.options.server.settings.memory_bytes =
           size_of(name, value, server::MemoryBound::kMinBytes, uint64_t{1} << 50);
     }},
    {"--threads", "-t", "NUMBER", "workers, 1 to 64; default one for each CPU, at most 4",
     [](Line& line, auto name, auto value) {
       line.options.server.settings.worker_count = static_cast<uint32_t>(number_of(name, value, 1, 64));
     }},
    {"--connections", "-c", "NUMBER", "how many clients there may be at a time; default 1024",
     [](Line& line, auto name, auto value) {
       line.options.server.settings.connections_max =
           static_cast<uint32_t>(number_of(name, value, 1, 1'000'000));
     }},
    {"--item-size", "-I", "SIZE", "the largest item, 1K to 1G; default 1M",
     [](Line& line, auto name, auto value) {
       const uint64_t bytes = size_of(name, value, kMinItemBytes, 1 << 30);
       line.options.server.settings.item_bytes_max = line.options.server.settings.value_bytes_max = bytes;
     }},
    {"--idle", "", "SECONDS",
     "closes connections on which nothing has come for this long; 0, the default: never", set_idle},
    {"--unix-mode", "-a", "MODE", "the mode of sockets in the file system, octal; default 700",
     [](Line& line, auto name, auto value) {
       unsigned mode = 0;
       const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), mode, 8);
       if (error != std::errc() || end != value.data() + value.size() || mode > 0777)
         refuse(concat(name, ": '", printable(value), "' is not an octal mode up to 777"));
       line.options.server.unix_mode = mode;
     }},
    {"--user", "-u", "NAME", "becomes this user once it listens and has opened the store",
     [](Line& line, auto, auto value) { line.options.user = value; }},
    {"--daemon", "-d", "", "goes on in the background once it serves",
     [](Line& line, auto, auto) { line.options.is_daemon = true; }},
    {"--pid-file", "-P", "FILE", "writes its process id there, and removes the file at the end",
     [](Line& line, auto name, auto value) {
       check_file_to_write(concat("serve: ", name), std::string(value));
       line.options.pid_file = value;
     }},
    {"--enable-shutdown", "-A", "", "lets clients end the server, by memcached's shutdown or Redis' SHUTDOWN",
     [](Line& line, auto, auto) { line.options.server.settings.takes_shutdown = true; }},
    {"--disable-flush", "-F", "", "refuses memcached's flush_all, and Redis' FLUSHALL and FLUSHDB",
     [](Line& line, auto, auto) { line.options.server.settings.takes_flush = false; }},
    {"--disable-watch", "-W", "", "refuses memcached's command watch",
     [](Line& line, auto, auto) { line.options.server.settings.takes_watch = false; }},
    {"--debug-time", "", "", "for tests: takes memcached's command debugtime, which moves the clock",
     [](Line& line, auto, auto) { line.options.has_movable_clock = true; }},
    {"--verbose", "-v", "", "says why connections end; given twice: also of those that end well",
     [](Line& line, auto, auto) { ++line.options.verbosity; }},
    {"--log", "", "FILE",
     "once it serves, messages go to this file, not to standard error; opened again at SIGHUP",
     [](Line& line, auto name, auto value) {
       check_file_to_write(concat("serve: ", name), std::string(value));
       line.options.server.log_file = value;
     }},
    {"--log-format", "", "text|json",
     "how messages are written: lines of text (default), or of JSON, one object a line",
     [](Line& line, auto name, auto value) {
       if (value != "text" && value != "json")
         refuse(concat(name, ": '", printable(value), "' is neither text nor json"));
       line.options.logs_json = value == "json";
     }},
    // Options of memcached, for scripts that start it.
    {"--port", "-p", "PORT", "memcached's: the port of --memcache, with -l; 0: none",
     [](Line& line, auto name, auto value) {
       line.port = static_cast<uint16_t>(number_of(name, value, 0, 65535));
     }},
    {"--listen", "-l", "HOST,...", "memcached's: the hosts of --memcache, with -p; HOST:PORT too",
     [](Line& line, auto name, auto value) {
       for_each_word(value, [&](std::string_view host) {
         if (host.empty()) refuse(concat(name, ": '", printable(value), "' names a host that is empty"));
         line.interfaces.emplace_back(host);
       });
     }},
    {"--unix-socket", "-s", "PATH", "memcached's: --memcache PATH",
     [](Line& line, auto, auto value) { line.options.server.memcache.push_back(concat("unix:", value)); }},
    // Less than the least memory is no error, so that scripts that start memcached with less keep working.
    {"--memory-limit", "-m", "MEGABYTES", "memcached's: --memory, in MiB; less than 32 is 32",
     [](Line& line, auto name, auto value) {
       line.options.server.settings.memory_bytes =
           std::max(number_of(name, value, 1, 1 << 30) << 20, server::MemoryBound::kMinBytes);
     }},
    {"--enable-ssl", "-Z", "", "memcached's: the ports of -p and -l are tls:",
     [](Line& line, auto, auto) { line.has_tls_ports = true; }},
    {"--udp-port", "-U", "0", "memcached's: takes no other port, since UDP is not served",
     [](Line&, auto name, auto value) {
       if (number_of(name, value, 0, 65535) != 0) refuse(concat(name, ": UDP is not served; leave it out"));
     }},
    {"--extended", "-o", "NAME=VALUE,...", "memcached's: idle_timeout is --idle, the rest has no effect",
     set_extended},
    {"", "-b", "NUMBER", nullptr, set_nothing},
    {"", "-B", "PROTOCOL", nullptr, set_nothing},
    {"", "-C", "", nullptr, set_nothing},
    {"", "-f", "FACTOR", nullptr, set_nothing},
    {"", "-k", "", nullptr, set_nothing},
    {"", "-L", "", nullptr, set_nothing},
    {"", "-n", "BYTES", nullptr, set_nothing},
    {"", "-r", "", nullptr, set_nothing},
    {"", "-R", "NUMBER", nullptr, set_nothing},
};

// A quarter of the memory that is free, on the machine or in its container.
uint64_t default_memory() {
  const uint64_t whole = std::min(sys::machine_memory_bytes(), sys::free_memory_bytes());
  return std::max(whole / 4, server::MemoryBound::kMinBytes);
}

const Option* find_option(std::string_view word) {
  const auto found = std::ranges::find_if(kOptions, [&](const Option& option) {
    return !word.empty() && (word == option.name || word == option.short_name);
  });
  return found == std::end(kOptions) ? nullptr : &*found;
}

bool takes_argument(const Option& option) { return *option.argument != 0; }

// An empty word is what a script makes of a variable that is not set. It must not count as an option that was left out: a server without
// --tls-ca takes every client, and one without --user stays root.
void set_argument(Line& line, const Option& option, std::string_view name, std::string_view argument) {
  if (argument.empty()) refuse(concat(name, " needs a ", option.argument, ", and not an empty word"));
  option.set(line, name, argument);
}

// memcached takes -p11211 and -vv for -p 11211 and -v -v. Returns how many words were taken.
size_t take_short(Line& line, Arguments left) {
  std::string_view letters = std::string_view(left[0]).substr(1);
  while (!letters.empty()) {
    const std::string name = concat('-', letters.front());
    const Option* const option = find_option(name);
    if (option == nullptr)
      refuse(concat("there is no option '", printable(name), "'; see spillway serve --help"));
    letters.remove_prefix(1);
    if (!takes_argument(*option)) {
      option->set(line, name, "");
      continue;
    }
    if (letters.empty() && left.size() < 2) refuse(concat(name, " needs a ", option->argument));
    set_argument(line, *option, name, letters.empty() ? std::string_view(left[1]) : letters);
    return letters.empty() ? 2 : 1;
  }
  return 1;
}

size_t take_long(Line& line, Arguments left) {
  const std::string_view word = left[0];
  const size_t equals = word.find('=');
  const Option* const option = find_option(word.substr(0, equals));
  if (option == nullptr)
    refuse(concat("there is no option '", printable(word), "'; see spillway serve --help"));
  if (!takes_argument(*option) && equals != std::string_view::npos)
    refuse(concat(option->name, " takes no argument"));
  if (!takes_argument(*option)) {
    option->set(line, option->name, "");
    return 1;
  }
  if (equals != std::string_view::npos) {
    set_argument(line, *option, option->name, word.substr(equals + 1));
    return 1;
  }
  if (left.size() < 2) refuse(concat(option->name, " needs a ", option->argument));
  set_argument(line, *option, option->name, left[1]);
  return 2;
}

// Adds the addresses that memcached's -l and -p mean.
void add_interfaces(Line& line) {
  const std::string port = std::to_string(line.port.value_or(11211));
  const std::string_view tls = line.has_tls_ports ? "tls:" : "";
  std::string& told = line.options.server.settings.interface;
  for (const std::string& host : line.interfaces) {
    told += concat(told.empty() ? "" : ",", host);
    // An IPv6 address without brackets has no port behind it.
    const bool is_bare = !host.starts_with('[') && host.find(':') != host.rfind(':');
    const bool has_port = !is_bare && host.contains(':') && (!host.starts_with('[') || host.contains("]:"));
    if (!has_port && line.port == 0)
      refuse(concat("-l ", printable(host),
                    " says where to listen, and -p 0 that nowhere; leave out one of them"));
    const std::string known = is_bare ? concat('[', host, ']') : host;
    line.options.server.memcache.push_back(concat(tls, has_port ? host : concat(known, ':', port)));
  }
  if (line.interfaces.empty() && line.port.value_or(0) != 0)
    line.options.server.memcache.push_back(concat(tls, port));
}

}  // namespace

bool parse_serve(Arguments arguments, ServeOptions& options) {
  Line line = {.options = options, .port = {}, .interfaces = {}, .key_file = {}};
  server::Settings& settings = options.server.settings;
  settings.version = concat(kSpokenVersion, "-spillway-", SPILLWAY_VERSION);
  settings.worker_count = std::min(4u, sys::cpu_count());
  options.store.durability = kv::Durability::kBatch;
  options.store.logs_told_failures = true;
  for (Arguments left = arguments; !left.empty();) {
    const std::string_view word = left[0];
    if (word == "--help" || word == "-h") return false;
    if (!word.starts_with('-') || word.size() < 2)
      refuse(concat("'", printable(word), "' is not an option; see spillway serve --help"));
    left = left.subspan(word.starts_with("--") ? take_long(line, left) : take_short(line, left));
  }
  add_interfaces(line);
  if (settings.memory_bytes == 0) settings.memory_bytes = default_memory();
  options.store.memory_bytes = settings.memory_bytes;
  if (options.is_cache && options.capacity_bytes == 0)
    refuse("--cache makes a cache, and needs --capacity SIZE; a store that is there knows whether it is one");
  if (options.storage.empty()) refuse("--storage DEVICE is missing: it says where the store is");
  if (line.key_file) options.storage = under_key(options.storage, *line.key_file);
  if (const char* password = getenv("SPILLWAY_PASSWORD");
      password != nullptr && settings.accounts.is_empty()) {
    if (*password == 0) refuse("the variable SPILLWAY_PASSWORD is empty; give it a password, or unset it");
    settings.accounts = server::Accounts::of_password(password);
  }
  if (options.server.tls.certificate.empty() &&
      !(options.server.tls.key.empty() && options.server.tls.client_authorities.empty()))
    refuse("--tls-key and --tls-ca need --tls-cert FILE, which is missing");
  const bool has_given = std::ranges::any_of(
      options.server.given, [](const auto& socket) { return socket.speech != server::Speech::kMetrics; });
  if (options.server.memcache.empty() && options.server.resp.empty() && !has_given)
    refuse(
        "it would listen nowhere; give --memcache ADDRESS, --resp ADDRESS or both, for example --memcache "
        "11211");
  return true;
}

std::string serve_help() {
  std::string text =
      "usage: spillway serve --storage DEVICE [--memcache ADDRESS] [--resp ADDRESS] [OPTION]...\n\n"
      "Serves a key-value store to clients of memcached and Redis, until SIGTERM or SIGINT. ADDRESS is PORT "
      "(of\n"
      "the loopback interfaces), HOST:PORT, *:PORT (of all interfaces) or the path of a socket; tls:ADDRESS "
      "is\n"
      "one by TLS. SIZE takes K, M, G, T. Options of memcached's are taken too, so that scripts that start "
      "it still work.\n\n";
  for (const Option& option : kOptions) {
    if (option.doc == nullptr) continue;
    std::string flag = concat(option.short_name.empty() ? "    " : concat(option.short_name, ", "),
                              option.name, ' ', option.argument);
    flag.resize(std::max<size_t>(33, flag.size() + 1), ' ');
    text += concat("  ", flag, option.doc, '\n');
  }
  return text;
}

}  // namespace tools
