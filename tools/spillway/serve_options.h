// The options of `spillway serve`, its own and those of memcached.
#pragma once
#include <string>

#include "command.h"
#include "kv/store.h"
#include "server/front/server.h"

namespace tools {

struct ServeOptions {
  std::string storage;
  uint64_t capacity_bytes = 0;  // if there is no store, one of this size is made; 0: none is made
  bool is_cache = false;        // the store that is made is a cache
  kv::StoreOptions store;
  server::ServerOptions server;
  bool is_daemon = false;
  std::string pid_file;
  std::string user;  // the user it becomes when it listens and has opened the store; empty: it keeps its user
  int verbosity = 0;
  bool logs_json = false;
  bool has_movable_clock = false;
  std::string without_effect;  // options of memcached that were given and do nothing here: "-k, -o modern"
};

// False: help was asked for. Throws WrongInput.
bool parse_serve(Arguments arguments, ServeOptions& options);
std::string serve_help();

}  // namespace tools
