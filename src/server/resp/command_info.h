// What COMMAND and the HELP of containers tell of a command.
#pragma once
#include "server/resp/command.h"
#include "server/resp/reply.h"

namespace server::resp {

// An element of the answer to COMMAND and COMMAND INFO: name, arity, flags, keys and categories, then the
// same of its subcommands. The lists of tips and of specifications of keys are empty.
void write_command_info(ReplyWriter& reply, const Command& command);

// A pair of the map that COMMAND DOCS answers with: the name, and what the command does; the same of its
// subcommands.
void write_command_docs(ReplyWriter& reply, const Command& command);

// The answer to HELP of a container: its subcommands, each with a line of what it does.
void write_help(ReplyWriter& reply, const Command& container);

}  // namespace server::resp
