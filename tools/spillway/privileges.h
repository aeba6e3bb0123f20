// What a server may do once it serves: what a user may who is not root.
//
//  1 before there is a second thread: nothing that it starts gains rights, nor does it itself by a program that it becomes. Threads inherit this
//  2 once it listens and has opened the store: it is the user, in all threads, with that one's groups alone and without capabilities
#pragma once
#include <pwd.h>

#include <string>

namespace tools {

// Throws WrongInput if there is none.
const passwd* find_user(const std::string& name);

// Step 1: no_new_privs, and no capability is left that could come back. REQUIRES: one thread. Who is not root and may not give capabilities up has
// none to lose.
void forbid_new_rights();

// Step 2. Throws WrongInput: it may not. Of who is the user already: nothing.
void become_user(const passwd& user);

}  // namespace tools
