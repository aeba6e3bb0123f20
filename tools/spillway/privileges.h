// How a server gives up the rights of root.
//
//  1 before there is a second thread it gives up all ways to gain rights: no program that it starts, or becomes, has more than it has. Threads
//    inherit this
//  2 when it listens and has opened the store, it becomes the user in all threads, with only that user's groups and without capabilities
#pragma once
#include <pwd.h>

#include <string>

namespace tools {

// Throws WrongInput if there is no such user.
const passwd* find_user(const std::string& name);

// Step 1: sets no_new_privs, and empties all sets by which capabilities could come back. REQUIRES: there is one thread. Errors are ignored: a process
// that is not root may be unable to do some of it, and has less to give up.
void forbid_new_rights();

// Step 2. A process that is that user already stays as it is. Throws WrongInput if the process may not become the user, or if capabilities would stay:
// it had them without being root, or is kept from losing them (SECBIT_NO_SETUID_FIXUP).
void become_user(const passwd& user);

}  // namespace tools
