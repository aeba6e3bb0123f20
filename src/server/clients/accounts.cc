#include "server/clients/accounts.h"

#include <cerrno>
#include <fstream>
#include <sstream>

namespace server {
namespace {

// Takes the same time wherever the two differ.
bool is_same_secret(std::string_view secret, std::string_view given) {
  unsigned difference = secret.size() != given.size();
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(secret.empty() ? 0 : secret[i % secret.size()]);
  return difference == 0;
}

}  // namespace

base::Expected<Accounts> Accounts::parse(std::string_view lines) {
  Accounts accounts;
  for (size_t number = 1; !lines.empty(); ++number) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    const bool has_user = colon != std::string_view::npos;
    const std::string_view user = has_user ? line.substr(0, colon) : kDefaultUser;
    const std::string_view password = has_user ? line.substr(colon + 1) : line;
    if (user.empty() || password.empty())
      return base::failure(EINVAL, "line ", number, " has no ", user.empty() ? "name" : "password",
                           "; lines are USER:PASSWORD, or PASSWORD for the user 'default'");
    if (!accounts.password_of(user).empty())
      return base::failure(EINVAL, "line ", number, " has the user of an earlier line");
    accounts.accounts_.push_back({std::string(user), std::string(password)});
  }
  if (accounts.is_empty()) return base::failure(EINVAL, "it has no line USER:PASSWORD");
  return accounts;
}

base::Expected<Accounts> Accounts::read(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::stringstream lines;
  if (!file || !(lines << file.rdbuf()))
    return base::failure(EINVAL, "cannot read ", path, ": ",
                         errno != 0 ? base::error_name(errno) : "it is empty");
  auto accounts = parse(lines.str());
  if (!accounts) return base::failure(EINVAL, path, ": ", accounts.error().message);
  return accounts;
}

Accounts Accounts::of_password(std::string_view password) {
  Accounts accounts;
  accounts.accounts_.push_back({std::string(kDefaultUser), std::string(password)});
  return accounts;
}

bool Accounts::admits(std::string_view user, std::string_view password) const {
  const std::string_view secret = password_of(user);
  return is_same_secret(secret, password) && !secret.empty();
}

std::string_view Accounts::password_of(std::string_view user) const {
  for (const Account& account : accounts_)
    if (account.user == user) return account.password;
  return {};
}

}  // namespace server
