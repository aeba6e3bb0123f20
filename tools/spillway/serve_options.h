// The words of `spillway serve`, its own and memcached's, as options of a server.
#pragma once
#include <string>

#include "command.h"
#include "kv/store.h"
#include "server/front/server.h"

namespace tools {

struct ServeOptions {
  std::string storage;
  uint64_t capacity_bytes = 0;  // of a store that is made if there is none; 0: none is made
  bool is_cache = false;        // that one
  kv::StoreOptions store;
  server::ServerOptions server;
  bool is_daemon = false;
  std::string pid_file;
  std::string user;  // to become once it listens; empty: nobody else
  int verbosity = 0;
  bool logs_json = false;
  bool has_movable_clock = false;
  std::string without_effect;  // what was said of memcached's that means nothing here: "-k, -o modern"
};

// False: help was asked for. Throws WrongInput.
bool parse_serve(Arguments arguments, ServeOptions& options);
std::string serve_help();

}  // namespace tools
