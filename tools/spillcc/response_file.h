// Response files (@file) on a compiler's command line, with the quoting rules of GNU tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillcc {

// Splits text into arguments: white space separates, quotes and backslashes protect.
std::vector<std::string> tokenize(std::string_view text);

// Replaces each @file by the arguments in it, also inside such files. One that cannot be read stays an
// argument, as clang treats it. Nesting deeper than 16 stays as it is.
std::vector<std::string> expand_response_files(const std::vector<std::string>& arguments);

}  // namespace spillcc
