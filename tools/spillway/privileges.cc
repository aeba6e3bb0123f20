#include "privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "command.h"

namespace tools {
namespace {

constexpr __user_cap_header_struct kOwn = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};

// Clears inheritable and ambient capabilities: a program that the process executes would have them, even if it is not root.
void forget_inheritable() {
  __user_cap_header_struct header = kOwn;
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) != 0) return;
  for (__user_cap_data_struct& part : data) part.inheritable = 0;
  syscall(SYS_capset, &header, data);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

bool has_capabilities() {
  __user_cap_header_struct header = kOwn;
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  return std::ranges::any_of(data, [](const auto& part) { return part.permitted != 0; });
}

}  // namespace

const passwd* find_user(const std::string& name) {
  const passwd* const user = getpwnam(name.c_str());
  if (user == nullptr) throw WrongInput(concat("serve: --user: there is no user '", printable(name), "'"));
  return user;
}

void forbid_new_rights() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  forget_inheritable();
  // This fails past the last capability that the kernel knows.
  for (unsigned capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability)
    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

// The C library changes the user in all threads. Capabilities would have to be given up by each thread: those of root go with the user, others
// stay.
void become_user(const passwd& user) {
  const bool is_other = user.pw_uid != geteuid();
  if (is_other &&
      (initgroups(user.pw_name, user.pw_gid) != 0 || setgid(user.pw_gid) != 0 || setuid(user.pw_uid) != 0))
    throw WrongInput(concat("serve: --user: cannot become '", user.pw_name, "': ", std::strerror(errno)));
  if (user.pw_uid != 0 && has_capabilities())
    throw WrongInput(concat("serve: --user: '", user.pw_name,
                            "' would keep capabilities that the server was started with; start it as root, "
                            "or without them"));
}

}  // namespace tools
