// Trial: runs a recovery command on images of a history's files, one after the other.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "history.h"

namespace persist_check {

// How a recovery ended.
struct Outcome {
  bool is_good = false;
  std::string text;  // "exit status 1", "signal 11 (Segmentation fault)", "no end within 10000 ms"
};

struct TrialOptions {
  // {} stands for the image of the first file, {2} and so on for those of the others in the order in which they were first mapped;
  // {marker} for the text of the last marker before the crash. All are quoted for a shell.
  std::string command;
  std::string folder;  // for the images, and the command's output; must exist
  std::chrono::milliseconds timeout{10'000};
};

class Trial {
 public:
  // Makes the images' files. Throws std::runtime_error with a message of one line, as do all functions below. The history must outlive the trial.
  Trial(const History& history, const TrialOptions& options);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  bool needs_marker() const { return options_.command.find("{marker}") != std::string::npos; }

  // Makes images with this content of all files, in the form of Medium::sure(), and runs the command. Pages that are already right are not written.
  // Meanwhile SIGINT, SIGTERM and SIGHUP end the command and then this process, so only one thread of a process may call it at a time.
  Outcome run(const std::vector<std::vector<Units>>& content, const std::string& marker);

  // Writes the content to files that stay, FOLDER/NAME.image, .image2 and so on, and the last command's output to FOLDER/NAME.txt. Returns the
  // command that recovers from these images.
  std::string keep(const std::vector<std::vector<Units>>& content, const std::string& marker,
                   const std::string& name);

 private:
  std::string image_path(const std::string& name, size_t file) const;
  std::string command_for(const std::string& name, const std::string& marker) const;
  void write_image(const std::string& path, const File& file, const std::vector<Units>& content) const;

  const History& history_;
  const TrialOptions options_;
};

// The text as one word for a shell.
std::string quoted(const std::string& text);

}  // namespace persist_check
