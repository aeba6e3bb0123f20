// Accounts: the names and passwords of those who may use a server, whatever protocol they speak.
//
//   alice:secret          a line for each user; a password may have colons
//   secret                the password of the user `default`, for clients that give no name
//
// Thread contract: const calls by any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace server {

class Accounts {
 public:
  static constexpr std::string_view kDefaultUser = "default";

  // Errors: EINVAL, with the number of the line, for a line without a name or a password and for a name that an earlier line has; EINVAL if there is
  // no line.
  static base::Expected<Accounts> parse(std::string_view lines);
  // Parses the lines of a file. Errors: EINVAL, with the path and what is wrong, also if the file cannot be read.
  static base::Expected<Accounts> read(const std::string& path);
  // Only the default user, with this password.
  static Accounts of_password(std::string_view password);

  // True: there are no accounts, and anybody may use the server.
  bool is_empty() const { return accounts_.empty(); }
  // Takes the same time for all wrong passwords of the same length for a user.
  bool admits(std::string_view user, std::string_view password) const;
  // "": there is no such user.
  std::string_view password_of(std::string_view user) const;

 private:
  struct Account {
    std::string user, password;
  };
  std::vector<Account> accounts_;
};

}  // namespace server
