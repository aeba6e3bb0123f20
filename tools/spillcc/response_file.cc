#include "response_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace spillcc {

namespace {

constexpr int kMaxDepth = 16;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

void expand(const std::string& argument, int depth, std::vector<std::string>& result) {
  if (argument.size() > 1 && argument[0] == '@' && depth < kMaxDepth) {
    const std::string path = argument.substr(1);
    std::ifstream file(path, std::ios::binary);
    std::error_code error;
    // Opening a directory succeeds; only reading it fails.
    if (file && !std::filesystem::is_directory(path, error)) {
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      for (const std::string& inner : tokenize(text)) expand(inner, depth + 1, result);
      return;
    }
  }
  result.push_back(argument);
}

}  // namespace

std::vector<std::string> tokenize(std::string_view text) {
  std::vector<std::string> result;
  std::string token;
  bool in_token = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      token += text[++i];
      in_token = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        token += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_token = true;
    } else if (is_space(c)) {
      if (in_token) result.push_back(std::move(token));
      token.clear();
      in_token = false;
    } else {
      token += c;
      in_token = true;
    }
  }
  if (in_token) result.push_back(std::move(token));
  return result;
}

std::vector<std::string> expand_response_files(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) expand(argument, 0, result);
  return result;
}

}  // namespace spillcc
