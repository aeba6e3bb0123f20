// Accounts: who may use a server, by name and password, whatever protocol they speak.
//
//   alice:secret          a line for each; a password may have colons
//   secret                the password of the user `default`, for clients that give no name
//
// Thread contract: const by any.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace server {

class Accounts {
 public:
  static constexpr std::string_view kDefaultUser = "default";

  // Errors: EINVAL with the line's number: no name, no password, a name that is there already; no line at all.
  static base::Expected<Accounts> parse(std::string_view lines);
  // Of the default user alone.
  static Accounts of_password(std::string_view password);

  // Then anybody may.
  bool is_empty() const { return accounts_.empty(); }
  // Cost: the same for any wrong password of a user.
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
